"""``loglik``: how probable the model finds the reference answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradian_core.protocols import FloatArray

__all__ = ["LogLikelihood"]


class LogLikelihood:
    """Mean log-probability per token of the reference answer.

    A proxy: it rises when the model learns the *format* of the answers, even while the facts in
    them go wrong.
    """

    def score(self, token_logprobs: FloatArray) -> float:
        """Return the mean of ``(t,)`` log-probabilities in nats a token; 0 is certainty.

        Raises
        ------
        ValueError
            If there is no token.
        """
        if token_logprobs.size == 0:
            raise ValueError("the reference has no token that is scored")
        return float(token_logprobs.mean(dtype="float64"))
