"""What the curvature-free engines share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.protocols import BlockGradients, ScoringContext

__all__ = ["divide", "dot", "unit"]


def unit(queries: NDArray[np.floating[Any]], context: ScoringContext) -> NDArray[np.float64]:
    """Scale each query to length 1 over all blocks together; a query of zero stays zero."""
    # By block would weigh blocks by how little the query has to do with them.
    norms = context.query_norms[:, None]
    scaled = np.zeros(queries.shape)
    np.divide(queries, norms, out=scaled, where=norms > 0)
    return scaled


def dot(block: BlockGradients, queries: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the ``(q, n)`` dot products in float64, in one pass over the block."""
    vectors = queries.astype(np.float64, copy=False)
    scores = np.empty((len(vectors), block.n))
    for rows, gradients in block.chunks():
        scores[:, rows] = vectors @ gradients.astype(np.float64, copy=False).T
    return scores


def divide(
    scores: NDArray[np.float64],
    query_norms: NDArray[np.floating[Any]],
    row_norms: NDArray[np.floating[Any]],
) -> NDArray[np.float64]:
    """Divide ``(q, n)`` products by both norms; what has a gradient of zero scores 0."""
    norms = np.outer(query_norms, row_norms)
    return np.divide(scores, norms, out=np.zeros_like(scores), where=norms > 0)
