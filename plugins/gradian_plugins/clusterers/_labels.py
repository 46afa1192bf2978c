"""Numbering of clusters that does not depend on an algorithm's inner order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["by_first_appearance"]


def by_first_appearance(labels: NDArray[np.integer]) -> NDArray[np.int64]:
    """Renumber clusters as 0, 1, … in the order in which they first appear; -1 stays -1."""
    old, first, index = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(np.where(old < 0, -1, first), kind="stable")
    new = np.empty(len(old), dtype=np.int64)
    new[order] = np.arange(len(old)) - int((old < 0).any())
    return new[index]
