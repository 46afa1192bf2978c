"""The engine bm25-contrast: Okapi BM25 (Robertson et al., TREC-3, 1994) between rows and answers.

With term frequencies ``f`` in a row of ``len`` words, ``N`` rows, ``n_t`` of them with term t::

    bm25(query, row) = sum_t log(1 + (N - n_t + 0.5) / (n_t + 0.5))
                             * f_t (k1 + 1) / (f_t + k1 (1 - b + b len / mean_len))

over the distinct terms of the query. Score = ``bm25(right answer) - bm25(what the model said)``.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from gradian_core.protocols import AttributionTask

__all__ = ["Bm25", "Bm25Settings", "Corpus"]

_WORD = re.compile(r"\w+")


class Bm25Settings(BaseModel):
    """Options of bm25-contrast."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    k1: float = Field(1.2, ge=0, allow_inf_nan=False)
    """How much a term that occurs again adds; 0: nothing."""
    b: float = Field(0.75, ge=0, le=1)
    """How much long rows are discounted; 0: not at all."""


class Corpus:
    """Rows as an inverted index, so that a query costs what its terms occur."""

    def __init__(self, texts: Sequence[str], settings: Bm25Settings) -> None:
        self.n = len(texts)
        counts = [Counter(words(text)) for text in texts]
        lengths = np.array([sum(count.values()) for count in counts], dtype=np.float64)
        mean = lengths.mean() or 1.0
        k1, b = settings.k1, settings.b
        discount = k1 * (1.0 - b + b * lengths / mean)
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for row, count in enumerate(counts):
            for term, f in count.items():
                weight = f * (k1 + 1.0) / (f + discount[row])
                self._postings.setdefault(term, []).append((row, weight))

    def score(self, query: str) -> NDArray[np.float64]:
        """Return the (n,) scores of a query."""
        scores = np.zeros(self.n)
        for term in sorted(set(words(query))):
            found = self._postings.get(term, [])
            rarity = math.log(1.0 + (self.n - len(found) + 0.5) / (len(found) + 0.5))
            for row, weight in found:
                scores[row] += rarity * weight
        return scores


class Bm25:
    """Implements gradian_core.protocols.TaskEngine on texts alone."""

    def __init__(self, settings: Bm25Settings) -> None:
        self._settings = settings

    def score(self, task: AttributionTask) -> NDArray[np.float64]:
        """Return (q, n) scores: below zero for rows that repeat what the model wrongly said."""
        corpus = Corpus([row.full_text for row in task.examples], self._settings)
        scores = np.zeros((task.q, task.n))
        unknown = 0
        for place, item in enumerate(task.items):
            if item.tuned_output is None:
                unknown += 1
                scores[place] = corpus.score(f"{item.prompt} {item.reference}")
            else:
                scores[place] = corpus.score(item.reference) - corpus.score(item.tuned_output)
        if unknown:
            task.note(
                f"bm25-contrast: for {unknown} of {task.q} items there is no answer of the model, "
                "so rows score by likeness to the item alone, which is never below zero."
            )
        return scores

    def caveats(self, task: AttributionTask) -> Sequence[str]:  # noqa: ARG002
        """Say what it is not."""
        return ("bm25-contrast compares words and knows nothing of the model: it is a baseline.",)


def words(text: str) -> list[str]:
    """Return the words of a text, folded."""
    return _WORD.findall(text.casefold())
