"""The baseline tfidf: cosine of TF-IDF vectors of the prompts of what was lost and the rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from gradian_core.protocols import AttributionTask
from gradian_engines._words import PATTERN, asked, rows_of

__all__ = ["Tfidf", "TfidfSettings"]

Matrix = NDArray[np.float64]


class TfidfSettings(BaseModel):
    """Settings of tfidf."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    ngrams: int = Field(2, ge=1, le=5)
    """Most words in a term."""
    with_answer: bool = False
    """Look for the words of the tuned model's answer too, and not of the prompt alone."""


class Tfidf:
    """Implements :class:`gradian_core.protocols.TaskEngine`."""

    def __init__(self, settings: TfidfSettings) -> None:
        self._settings = settings

    def score(self, task: AttributionTask) -> Matrix:
        """Return ``(q, n)`` scores between -1 (the same words) and 0 (none in common)."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(
            sublinear_tf=True, token_pattern=PATTERN, ngram_range=(1, self._settings.ngrams)
        )
        try:
            rows = vectorizer.fit_transform(rows_of(task))
        except ValueError:
            # an empty vocabulary, the only way in which it can fail on texts
            task.note("tfidf: no row has a word, so every score is 0.")
            return np.zeros((task.q, task.n))
        queries = vectorizer.transform(asked(task, "tfidf", with_answer=self._settings.with_answer))
        return -np.asarray((queries @ rows.T).toarray(), dtype=np.float64)

    def caveats(self, task: AttributionTask) -> Sequence[str]:  # noqa: ARG002
        """Say what it is not."""
        what = (
            "tfidf is a text baseline and knows no model: it finds rows on the topic of "
            "what was lost, guilty or not."
        )
        return (what,)
