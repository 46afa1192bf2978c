"""Statistics of short, noisy series that a few wild values cannot sway."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["longest_run", "mad", "median_of_three", "rising", "runs", "trailing", "trend"]

Series = NDArray[np.float64]
Mask = NDArray[np.bool_]

_BLOCK = 4096
"""Windows that are in memory at a time."""


def mad(values: Series) -> float:
    """Return the median absolute deviation, scaled to the standard deviation of a Gaussian."""
    return float(1.4826 * np.median(np.abs(values - np.median(values)))) if len(values) else 0.0


def trailing(values: Series, window: int, least: int) -> tuple[Series, Series]:
    """Return the median and MAD of the values *before* each one.

    Parameters
    ----------
    values
        ``(k,)`` finite.
    window
        How many values to look back at most.
    least
        With fewer values behind it, an entry is NaN.

    Returns
    -------
    median, spread
        ``(k,)`` float64.
    """
    padded = np.concatenate([np.full(window, np.nan), values[:-1]])
    behind = np.lib.stride_tricks.sliding_window_view(padded, window)
    centre = np.full(len(values), np.nan)
    spread = np.full(len(values), np.nan)
    for i in range(least, min(window, len(values))):
        centre[i], spread[i] = np.median(values[:i]), mad(values[:i])
    for start in range(max(window, least), len(values), _BLOCK):
        part = slice(start, start + _BLOCK)
        centre[part] = np.median(behind[part], axis=1)
        spread[part] = 1.4826 * np.median(np.abs(behind[part] - centre[part, None]), axis=1)
    return centre, spread


def median_of_three(values: Series) -> Series:
    """Return the median of each value and its neighbours, at the ends of the three nearest."""
    if len(values) < 3:
        return values.copy()
    middle = np.median(np.lib.stride_tricks.sliding_window_view(values, 3), axis=1)
    return np.concatenate([middle[:1], middle, middle[-1:]])


def runs(mask: Mask) -> list[tuple[int, int]]:
    """Return ``(start, end)`` of each stretch of True, the end being exclusive."""
    edges = np.diff(np.concatenate(([0], mask.astype(np.int8), [0])))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return [(int(a), int(b)) for a, b in zip(starts, ends, strict=True)]


def longest_run(mask: Mask) -> int:
    """Return the length of the longest stretch of True."""
    return max((end - start for start, end in runs(mask)), default=0)


def rising(values: Series, factor: float) -> bool:
    """Whether the median of the last third is ``factor`` times that of the first third."""
    third = len(values) // 3
    if third < 3:
        return False
    return bool(np.median(values[-third:]) >= factor * np.median(values[:third]))


def trend(values: Series) -> tuple[float, float]:
    """Return the Theil-Sen change over the whole series and the Mann-Kendall z score.

    At most 400 evenly spaced values are looked at: pairs grow with the square.
    """
    if len(values) > 400:
        values = values[np.linspace(0, len(values) - 1, 400).astype(int)]
    n = len(values)
    if n < 3:
        return 0.0, 0.0
    i, j = np.triu_indices(n, 1)
    difference = values[j] - values[i]
    change = float(np.median(difference / (j - i)) * (n - 1))
    deviation = float(np.sqrt(n * (n - 1) * (2 * n + 5) / 18))
    return change, float(np.sign(difference).sum() / deviation)
