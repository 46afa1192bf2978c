"""The TracIn engine (Pruthi et al., NeurIPS 2020, arXiv 2002.08484).

``s_j = sum_c eta_c sum_l <g_q(c), g_j(c)>`` over saved checkpoints *c* with the learning rate
``eta_c`` of their step. Called once for each checkpoint; the sum over them is the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from gradian_core.protocols import BlockGradients, ScoringContext
from gradian_engines._dot import dot, unit

__all__ = ["TracIn", "TracInSettings"]


class TracInSettings(BaseModel):
    """Settings of tracin."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    normalize_query: bool = False
    """Scale each query to unit length."""
    learning_rate: float | None = Field(None, gt=0, le=1e6, allow_inf_nan=False)
    """In place of the one in the trainer's log."""


class TracIn:
    """Implements :class:`gradian_core.protocols.BlockEngine`."""

    def __init__(self, settings: TracInSettings) -> None:
        self._settings = settings

    def _rate(self, context: ScoringContext) -> float | None:
        own = self._settings.learning_rate
        return context.learning_rate if own is None else own

    def score_block(
        self,
        block: BlockGradients,
        queries: NDArray[np.floating[Any]],
        context: ScoringContext,
    ) -> NDArray[np.float64]:
        """Return the ``(q, n)`` terms of one checkpoint."""
        rate = self._rate(context)
        vectors = unit(queries, context) if self._settings.normalize_query else queries
        return dot(block, vectors) * (1.0 if rate is None else rate)

    def caveats(self, context: ScoringContext) -> Sequence[str]:
        """Say when it degenerates, and when the learning rate is not known."""
        sentences = []
        if context.n_checkpoints == 1:
            sentences.append(
                "With one checkpoint tracin is graddot times the learning rate: the two rank "
                "rows alike, and their agreement is no evidence."
            )
        if self._rate(context) is None:
            sentences.append(
                "The learning rate is unknown, so tracin used 1: its scores have no scale."
            )
        return tuple(sentences)
