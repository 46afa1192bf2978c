"""The TracIn engine (Pruthi et al., NeurIPS 2020, arXiv 2002.08484).

``s_j = sum_c eta_c sum_l <g_q(c), g_j(c)>`` over saved checkpoints *c* with the learning rate
``eta_c`` of their step; with ``cosine``, cosines over all blocks together in place of the products.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from gradian_core.protocols import AttributionTask, Checkpoint, GradientPoint
from gradian_engines._dot import divide, dot, unit

__all__ = ["TracIn", "TracInSettings"]

Matrix = NDArray[np.float64]


class TracInSettings(BaseModel):
    """Settings of tracin."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    normalize_query: bool = False
    """Scale each query to unit length at each checkpoint."""
    cosine: bool = False
    """Scale rows and queries to unit length at each checkpoint."""
    learning_rate: float | None = Field(None, gt=0, allow_inf_nan=False)
    """At every checkpoint, in place of those in the trainer's log."""


class TracIn:
    """Implements :class:`gradian_core.protocols.TaskEngine`."""

    def __init__(self, settings: TracInSettings) -> None:
        self._settings = settings

    def score(self, task: AttributionTask) -> Matrix:
        """Return the ``(q, n)`` scores, summed over checkpoints."""
        total = np.zeros((task.q, task.n))
        for checkpoint, rate in self._rates(task):
            total += rate * self._at(task.gradients(checkpoint=checkpoint))
        return total

    def _rates(self, task: AttributionTask) -> list[tuple[Checkpoint, float]]:
        own = self._settings.learning_rate
        if own is not None:
            return [(checkpoint, own) for checkpoint in task.checkpoints]
        known = [(c, c.learning_rate) for c in task.checkpoints if c.learning_rate is not None]
        if not known:
            return [(checkpoint, 1.0) for checkpoint in task.checkpoints]
        if len(known) < len(task.checkpoints):
            task.note(
                f"tracin left out {len(task.checkpoints) - len(known)} of "
                f"{len(task.checkpoints)} checkpoints: the log has no learning rate for them."
            )
        return known

    def _at(self, point: GradientPoint) -> Matrix:
        scores = np.zeros((len(point.context.query_norms), len(point.row_norms)))
        for block, queries in point.blocks():
            whole = self._settings.normalize_query and not self._settings.cosine
            scores += dot(block, unit(queries, point.context) if whole else queries)
        if self._settings.cosine:
            return divide(scores, point.context.query_norms, point.row_norms)
        return scores

    def caveats(self, task: AttributionTask) -> Sequence[str]:
        """Say when it degenerates, and when the learning rate is not known."""
        sentences = []
        if len(self._rates(task)) == 1 and not self._settings.cosine:
            sentences.append(
                "With one checkpoint tracin is graddot times the learning rate: the two rank "
                "rows alike, and their agreement is no evidence."
            )
        own = self._settings.learning_rate
        if own is None and all(c.learning_rate is None for c in task.checkpoints):
            sentences.append(
                "The learning rate is unknown, so tracin used 1: its scores have no scale."
            )
        return tuple(sentences)
