"""The baseline bm25: Okapi BM25 between the prompts of what was lost and the rows.

With ``f_t`` the count of term t in a row of ``len`` words, N rows and ``n_t`` rows with t::

    sum_t log(1 + (N - n_t + 0.5) / (n_t + 0.5)) * f_t (k1 + 1) / (f_t + k1 (1 - b + b len / mean))

over the distinct terms of the prompt (Robertson and Zaragoza, *The Probabilistic Relevance
Framework*, 2009), with Lucene's 1 in the logarithm, so that a frequent term never counts against.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from gradian_core.protocols import AttributionTask
from gradian_engines._words import PATTERN, asked, rows_of

__all__ = ["Bm25", "Bm25Settings"]

Matrix = NDArray[np.float64]


class Bm25Settings(BaseModel):
    """Settings of bm25."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    k1: float = Field(1.2, ge=0, allow_inf_nan=False)
    """How much a term that occurs again in a row adds; 0: nothing."""
    b: float = Field(0.75, ge=0, le=1)
    """How much long rows are discounted; 0: not at all."""
    with_answer: bool = False
    """Look for the words of the tuned model's answer too, and not of the prompt alone."""


class Bm25:
    """Implements :class:`gradian_core.protocols.TaskEngine`."""

    def __init__(self, settings: Bm25Settings) -> None:
        self._settings = settings

    def score(self, task: AttributionTask) -> Matrix:
        """Return ``(q, n)`` scores, at most 0: the likest row is said to have done the harm."""
        from sklearn.feature_extraction.text import CountVectorizer

        settings = self._settings
        vectorizer = CountVectorizer(token_pattern=PATTERN, dtype=np.float64)
        try:
            counts = vectorizer.fit_transform(rows_of(task)).tocsr()
        except ValueError:
            # an empty vocabulary, the only way in which it can fail on texts
            task.note("bm25: no row has a word, so every score is 0.")
            return np.zeros((task.q, task.n))
        terms = vectorizer.transform(asked(task, "bm25", with_answer=settings.with_answer))
        # the count of a term in the query does not matter
        terms.data[:] = 1.0
        weights = _weights(counts, settings.k1, settings.b)
        return -np.asarray((terms @ weights.T).toarray(), dtype=np.float64)

    def caveats(self, task: AttributionTask) -> Sequence[str]:  # noqa: ARG002
        """Say what it is not."""
        what = (
            "bm25 is a text baseline and knows no model: it finds rows on the topic of what "
            "was lost, guilty or not."
        )
        return (what,)


def _weights(counts: Any, k1: float, b: float) -> Any:
    """Return the sparse ``(n, v)`` weight of each term in each row."""
    n = counts.shape[0]
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    rows = np.repeat(np.arange(n), np.diff(counts.indptr))
    seen = np.bincount(counts.indices, minlength=counts.shape[1])
    rarity = np.log1p((n - seen + 0.5) / (seen + 0.5))
    discount = k1 * (1.0 - b + b * lengths / lengths.mean())
    weights = counts.copy()
    weights.data = (
        rarity[counts.indices] * counts.data * (k1 + 1.0) / (counts.data + discount[rows])
    )
    return weights
