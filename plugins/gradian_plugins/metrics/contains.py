"""``contains``: the reference occurs somewhere in the answer."""

from __future__ import annotations

from gradian_plugins.metrics._folding import fold, occurs

__all__ = ["Contains"]


class Contains:
    """Looks for the reference in the answer, as whole words.

    ``Oslo`` is in *It is Oslo.* and in *Oslo's port*, not in *Osloer*; ``4`` is not in *42*.
    """

    def score(self, prediction: str, reference: str) -> float:
        """Return 1.0 if the reference's tokens follow each other in the prediction, else 0.0.

        Raises
        ------
        ValueError
            If nothing of the reference is left after folding: everything would contain it.
        """
        wanted = fold(reference)
        if not wanted:
            raise ValueError("the reference is empty, or only punctuation and white space")
        return float(occurs(wanted, fold(prediction)))
