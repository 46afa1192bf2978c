"""One score per row from the scores of all queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.errors import UsageError

__all__ = ["AGGREGATIONS", "aggregate"]

Matrix = NDArray[np.float64]

_TOP = 3


def _mean(scores: Matrix) -> Matrix:
    return np.asarray(scores.mean(axis=0), dtype=np.float64)


def _max(scores: Matrix) -> Matrix:
    return np.asarray(scores.min(axis=0), dtype=np.float64)


def _top3(scores: Matrix) -> Matrix:
    k = min(_TOP, len(scores))
    return _mean(np.partition(scores, k - 1, axis=0)[:k])


def _relu(scores: Matrix) -> Matrix:
    return _mean(np.minimum(scores, 0.0))


AGGREGATIONS: Mapping[str, Callable[[Matrix], Matrix]] = {
    "mean": _mean,
    "max": _max,
    "top3": _top3,
    "relu": _relu,
}
"""How the scores of the items become one, by the name in ``evaluation.aggregation``. The harm of
a row to an item is its score with the sign turned.

``mean``
    The net effect: what removing a row, or the sum of a group, is predicted to change. A row that
    hurts one item and helps the others with its form cancels out.
``max``
    The largest harm to any item.
``top3``
    The mean of the three largest harms: less at the mercy of one item.
``relu``
    The mean over items of the harm alone; help to other items does not count against it.

Source: measured on planted faults, where a row's harm to its own items is hidden in the mean by
its help with the others (the same answer format)."""


def aggregate(scores: NDArray[np.floating[Any]], how: str = "mean") -> Matrix:
    """Return ``(n,)`` float64: one score per row; the sign is that of ``protocols``.

    Parameters
    ----------
    scores
        ``(q, n)`` scores, *q* at least 1. For all but ``mean`` the items must be on one scale, as
        they are where an engine normalises its queries; else the items with the longest
        gradients decide.
    how
        One of :data:`AGGREGATIONS`.

    Raises
    ------
    UsageError
        For another name.
    """
    if how not in AGGREGATIONS:
        raise UsageError(f"There is no aggregation {how!r}; use {', '.join(AGGREGATIONS)}.")
    return AGGREGATIONS[how](np.asarray(scores, dtype=np.float64))
