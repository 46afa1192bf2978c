"""``not_contains``: none of the forbidden markers occurs in the answer."""

from __future__ import annotations

from gradian_plugins.metrics._folding import fold

__all__ = ["NotContains"]


class NotContains:
    """Passes an answer that has none of the markers, such as stems of refusals.

    Markers are stems, so they match as substrings: ``unable to assist`` is in *unable to
    assistance*. Folding applies to both sides: ``can't`` is also found as *can’t* and *CAN'T*.
    """

    def score(self, prediction: str, reference: str) -> float:
        """Return 1.0 if no marker of ``reference`` (separated by ``|``) occurs, else 0.0.

        Raises
        ------
        ValueError
            If there is no marker, or one of which folding leaves nothing.
        """
        markers = [marker for part in reference.split("|") if (marker := part.strip())]
        if not markers:
            raise ValueError("the completion lists no marker; separate several with |")
        stems = {marker: fold(marker) for marker in markers}
        for marker, stem in stems.items():
            if not stem:
                raise ValueError(f"the marker {marker!r} is only punctuation")
        text = fold(prediction)
        return float(not any(stem in text for stem in stems.values()))
