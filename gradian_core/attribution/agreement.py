"""How far two engines agree on who is to blame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Agreement", "agreement", "average_ranks", "membership", "paired_ranks"]

SAME_DIRECTION = 1e-6
"""Relative distance from a multiple below which two score vectors are one."""
SAME_RANKS = 20
"""Rows from which an identical order of all of them is no coincidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement of two rankings of the same rows.

    Parameters
    ----------
    n
        Rows compared.
    spearman
        Rank correlation over all of them, None where a ranking does not distinguish any two
        rows. It is dominated by the many rows that hardly matter.
    k
        Number of most harmful rows compared.
    overlap
        Share of them that both rankings name, in [0, 1].
    chance
        Overlap that two unrelated rankings would have on average, ``k / n``.
    independent
        False where the second scores are the first ones times a positive number, or order at
        least :data:`SAME_RANKS` rows in exactly the same way: both are one computation, and that
        they agree is no evidence.
    """

    n: int
    spearman: float | None
    k: int
    overlap: float
    chance: float
    independent: bool = True


def agreement(
    a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]], k: int | None = None
) -> Agreement:
    """Compare two rankings.

    Parameters
    ----------
    a, b
        ``(n,)`` scores of the same rows. Leave out rows that have no gradient: their common
        score of 0 would count as agreement.
    k
        Number of most harmful rows to compare (the lowest scores); None for the top decile.

    Raises
    ------
    ValueError
        If the shapes differ, there is no row, a score is not finite, or ``k`` is not in 1..n.
    """
    if a.ndim != 1 or a.shape != b.shape or len(a) == 0:
        raise ValueError(f"two rankings of the same rows are needed, not {a.shape} and {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("scores must be finite")
    n = len(a)
    top = max(1, round(n / 10)) if k is None else k
    if not 1 <= top <= n:
        raise ValueError(f"k must be between 1 and {n}, not {top}")
    return Agreement(
        n=n,
        spearman=_spearman(a, b),
        k=top,
        overlap=float(membership(a, top) @ membership(b, top)) / top,
        chance=top / n,
        independent=not _same(a, b),
    )


def _same(a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]]) -> bool:
    """Whether two engines computed one thing; never so where one tells no two rows apart."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return False
    # scaled first: squares of scores near the limits of float64 overflow
    x = a.astype(np.float64) / np.abs(a).max()
    y = b.astype(np.float64) / np.abs(b).max()
    factor = float(x @ y) / float(x @ x)
    if factor > 0 and np.linalg.norm(y - factor * x) <= SAME_DIRECTION * np.linalg.norm(y):
        return True
    return len(a) >= SAME_RANKS and np.array_equal(average_ranks(a), average_ranks(b))


def average_ranks(values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of their ranks."""
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(size)
    ranks: NDArray[np.float64] = (last - (size - 1) / 2)[group]
    return ranks


def paired_ranks(
    a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]], most: int = 200
) -> list[tuple[int, int]]:
    """Ranks of some rows in two rankings, for a picture: evenly spaced in the first of them.

    Parameters
    ----------
    a, b
        ``(n,)`` scores of the same rows; the lowest has rank 1. Ties in the order of the file.
    most
        Rows that are wanted at most.
    """
    order = np.argsort(a, kind="stable")
    rank = np.empty(len(b), dtype=np.int64)
    rank[np.argsort(b, kind="stable")] = np.arange(1, len(b) + 1)
    chosen = np.unique(np.linspace(0, len(a) - 1, min(most, len(a))).round().astype(np.int64))
    return [(int(i) + 1, int(rank[order[i]])) for i in chosen]


def _spearman(a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]]) -> float | None:
    x, y = average_ranks(a), average_ranks(b)
    x, y = x - x.mean(), y - y.mean()
    norm = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / norm if norm > 0 else None


def membership(values: NDArray[np.floating[Any]], k: int) -> NDArray[np.float64]:
    """Probability of each row to be among the ``k`` lowest if ties are broken by lot."""
    # Breaking ties by position would make two constant rankings agree perfectly.
    threshold = np.partition(values, k - 1)[k - 1]
    below = values < threshold
    tied = values == threshold
    share = (k - int(below.sum())) / int(tied.sum())
    probabilities: NDArray[np.float64] = below + tied * share
    return probabilities
