"""The engines' formulas written out densely: slow, plain, and independent of their code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.protocols import ScoringContext
from gradian_engines._datainf import DataInfSettings

__all__ = ["datainf", "graddot"]

Matrix = NDArray[np.floating[Any]]


def graddot(gradients: Matrix, queries: Matrix, context: ScoringContext, settings: Any) -> Matrix:  # noqa: ARG001
    """Return ``<g_q, g_j>``."""
    return np.asarray(queries @ gradients.T)


def datainf(
    gradients: Matrix,
    queries: Matrix,
    context: ScoringContext,  # noqa: ARG001
    settings: DataInfSettings,
) -> Matrix:
    """Return ``<g_q, mean_i (lambda I + g_i g_i')^-1 g_j>``, with every inverse formed."""
    n, dim = gradients.shape
    damping = settings.lambda_override or settings.lambda_scale * float((gradients**2).mean())
    inverse = sum(np.linalg.inv(damping * np.eye(dim) + np.outer(g, g)) for g in gradients) / n
    return np.asarray(queries @ inverse @ gradients.T)
