"""The graddot engine.

The influence of an example if the curvature were the identity: ``s_j = sum_l <g_q, g_j>``.
With ``grads.normalization: l2`` and ``normalize_query`` it is the cosine over all blocks
together, never per block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from gradian_core.protocols import BlockGradients, ScoringContext
from gradian_engines._dot import dot, unit

__all__ = ["GradDot", "GradDotSettings"]


class GradDotSettings(BaseModel):
    """Settings of graddot."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    normalize_query: bool = False
    """Scale each query to unit length."""


class GradDot:
    """Implements :class:`gradian_core.protocols.BlockEngine`."""

    def __init__(self, settings: GradDotSettings) -> None:
        self._settings = settings

    def score_block(
        self,
        block: BlockGradients,
        queries: NDArray[np.floating[Any]],
        context: ScoringContext,
    ) -> NDArray[np.float64]:
        """Return the ``(q, n)`` dot products."""
        return dot(block, unit(queries, context) if self._settings.normalize_query else queries)

    def caveats(self, context: ScoringContext) -> Sequence[str]:  # noqa: ARG002
        """Say what is left out."""
        sentence = (
            "graddot ignores curvature: rows with large gradients, such as short or unusual ones, "
            "weigh more than they should."
        )
        return (sentence,)
