"""A block of gradients in memory, as engines see those of an index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradian_core.protocols import ScoringContext

__all__ = ["MemoryBlock", "context_of"]

Array = NDArray[np.floating[Any]]


class MemoryBlock:
    """Implements :class:`gradian_core.protocols.BlockGradients` on a matrix.

    Parameters
    ----------
    gradients
        ``(n, dim)`` float32 or float64. Engines get read-only views of a copy.
    name
        Name of the block.
    piece
        Rows in a chunk; all at once if None.
    """

    def __init__(
        self, gradients: ArrayLike, *, name: str = "block", piece: int | None = None
    ) -> None:
        self._gradients: Array = np.array(gradients)
        if self._gradients.ndim != 2 or self._gradients.dtype.kind != "f":
            raise ValueError("gradients must be a matrix of floating point numbers")
        self.name = name
        self.n, self.dim = self._gradients.shape
        self.exact_dim = self.dim
        self.squared_norms = (self._gradients.astype(np.float64) ** 2).sum(axis=1)
        self._piece = piece or max(self.n, 1)
        for array in (self._gradients, self.squared_norms):
            array.setflags(write=False)

    def chunks(self) -> Iterator[tuple[slice, Array]]:
        """Yield slices of rows with their gradients."""
        for start in range(0, self.n, self._piece):
            rows = slice(start, min(start + self._piece, self.n))
            yield rows, self._gradients[rows]


def context_of(block: MemoryBlock, queries: Array) -> ScoringContext:
    """Return what an engine is told where this block is all there is."""
    return ScoringContext(
        n_examples=block.n,
        query_norms=np.linalg.norm(queries.astype(np.float64), axis=1),
        learning_rate=1e-3,
    )
