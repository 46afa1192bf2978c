"""Which rows go into a batch together: few enough rows, few enough tokens, little padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["plan_batches"]


def plan_batches(
    lengths: Sequence[int] | NDArray[np.integer], max_rows: int, max_tokens: int
) -> list[slice]:
    """Cut rows, in the order given, into consecutive batches.

    Parameters
    ----------
    lengths
        ``(n,)`` tokens of each row. Sort the rows by length first: a batch is padded to its
        longest row.
    max_rows
        Most rows in a batch.
    max_tokens
        Most tokens in a batch, padding included. A row that is longer by itself still gets a
        batch, of its own: rows are never cut here.

    Returns
    -------
    list of slice
        Together they cover every row once.
    """
    if max_rows < 1 or max_tokens < 1:
        raise ValueError(f"a batch holds at least 1 row and 1 token, not {max_rows}, {max_tokens}")
    batches = []
    start, longest = 0, 0
    for row, length in enumerate(lengths):
        longest = max(longest, int(length))
        size = row - start + 1
        if size > 1 and (size > max_rows or size * longest > max_tokens):
            batches.append(slice(start, row))
            start, longest = row, int(length)
    if start < len(lengths):
        batches.append(slice(start, len(lengths)))
    return batches
