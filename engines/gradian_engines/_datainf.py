"""The DataInf engine (Kwon et al., ICLR 2024, arXiv 2310.00902).

For each block *l* with *n* gradients and damping ``lambda_l``::

    r_l = (1/lambda_l) [ g_q - (1/n) sum_i (g_i . g_q) / (lambda_l + |g_i|^2) g_i ]
    s_j = sum_l <r_l, g_j>

In matrix form, for queries V (q, d) and gradients G (n, d): ``C = V G' / (lambda + |g|^2)``,
``R = (V - C G / n) / lambda``, ``S = R G'``: two passes over G, whatever the number of queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from gradian_core.protocols import BlockGradients, ScoringContext
from gradian_engines._dot import dot

__all__ = ["DataInf", "DataInfSettings"]


class DataInfSettings(BaseModel):
    """Settings of datainf."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    lambda_scale: float = Field(0.1, ge=1e-100, le=1e100, allow_inf_nan=False)
    """Damping relative to the mean squared component of the gradients in each block."""
    lambda_override: float | None = Field(None, ge=1e-100, le=1e100, allow_inf_nan=False)
    """Absolute damping in place of it."""


class DataInf:
    """Implements :class:`gradian_core.protocols.BlockEngine`."""

    def __init__(self, settings: DataInfSettings) -> None:
        self._settings = settings

    def _damping(self, block: BlockGradients) -> float:
        if self._settings.lambda_override is not None:
            return self._settings.lambda_override
        # The dimension before projection: a projection keeps norms, so the damping, and with it
        # each block's weight in the sum, is the one of the exact gradients.
        components = block.n * block.exact_dim
        return self._settings.lambda_scale * float(block.squared_norms.sum()) / components

    def score_block(
        self,
        block: BlockGradients,
        queries: NDArray[np.floating[Any]],
        context: ScoringContext,  # noqa: ARG002
    ) -> NDArray[np.float64]:
        """Return the ``(q, n)`` scores of one block; zeros where every gradient is zero."""
        # Along a dominant gradient the bracket cancels to lambda / |g|^2, often 1e-7: float32
        # would keep no digit of it.
        V = queries.astype(np.float64, copy=False)
        damping = self._damping(block)
        if damping == 0.0:
            return np.zeros((len(V), block.n))
        weights = 1.0 / (damping + block.squared_norms)
        correction = np.zeros_like(V)
        for rows, gradients in block.chunks():
            G = gradients.astype(np.float64, copy=False)
            correction += (V @ G.T * weights[rows]) @ G
        return dot(block, (V - correction / block.n) / damping)

    def caveats(self, context: ScoringContext) -> Sequence[str]:  # noqa: ARG002
        """Say what is approximated and what it depends on."""
        damping = (
            f"lambda_scale = {self._settings.lambda_scale:g}"
            if self._settings.lambda_override is None
            else f"lambda_override = {self._settings.lambda_override:g}"
        )
        sentence = (
            "datainf averages inverses in place of inverting the average, block by block: it is "
            f"an approximation, and its ranking depends on the damping ({damping})."
        )
        scale = type(self._settings).model_fields["lambda_scale"].default
        if self._settings.lambda_override is None or self._settings.lambda_scale == scale:
            return (sentence,)
        return (sentence, "lambda_scale has no effect beside lambda_override.")
