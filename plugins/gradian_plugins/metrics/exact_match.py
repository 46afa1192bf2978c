"""``exact_match``: the whole answer is the reference."""

from __future__ import annotations

from gradian_plugins.metrics._folding import fold

__all__ = ["ExactMatch"]


class ExactMatch:
    """Compares whole answers, after folding what may be spelled either way."""

    def score(self, prediction: str, reference: str) -> float:
        """Return 1.0 if prediction and reference fold to the same tokens, else 0.0.

        Raises
        ------
        ValueError
            If nothing of the reference is left after folding.
        """
        wanted = fold(reference)
        if not wanted:
            raise ValueError("the reference is empty, or only punctuation and white space")
        return float(fold(prediction) == wanted)
