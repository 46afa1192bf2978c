"""Which rows each retraining leaves out, and in which order it sees the others.

All arms of one seed share the adapter's initial weights, the number of steps and the order of
the rows that they share, so that what differs between them is the rows that were left out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradian_core.errors import UsageError

__all__ = ["ACCUSED", "FULL", "LOW_RATE", "Arm", "equal_mass", "visits"]

FULL = "full"
ACCUSED = "without accused"
LOW_RATE = "low learning rate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to retrain.

    Parameters
    ----------
    name
        What it is called in the result.
    dropped
        Places of the rows that it leaves out.
    rate_factor
        Factor of the learning rate.
    """

    name: str
    dropped: frozenset[int] = frozenset()
    rate_factor: float = 1.0


def equal_mass(mass: NDArray[np.integer], accused: Collection[int], seed: int) -> frozenset[int]:
    """Draw rows that are not accused and hold as many tokens as those that are.

    Parameters
    ----------
    mass
        ``(n,)`` tokens of each row.
    accused
        Places of the accused rows.
    seed
        Seeds the draw.

    Returns
    -------
    frozenset
        Places whose mass differs from that of the accused by less than one row.

    Raises
    ------
    UsageError
        If the accused rows hold more tokens than all others, so that there is no such set.
    """
    inside = np.zeros(len(mass), dtype=bool)
    inside[list(accused)] = True
    wanted = int(mass[inside].sum())
    others = np.flatnonzero(~inside & (mass > 0))
    if int(mass[others].sum()) <= wanted:
        raise UsageError(
            f"The {len(accused)} accused rows hold {wanted / max(1, int(mass.sum())):.0%} of all "
            "tokens: there are no other rows of the same weight to compare with.",
            hint="Accuse fewer rows with --cluster or --ids.",
        )
    drawn = np.random.default_rng(seed).permutation(others)
    total = np.cumsum(mass[drawn])
    count = int(np.searchsorted(total, wanted)) + 1
    # one row less may come closer
    if count > 1 and wanted - total[count - 2] < total[count - 1] - wanted:
        count -= 1
    return frozenset(drawn[:count].tolist())


def visits(n: int, dropped: Collection[int], count: int, seed: int) -> list[int]:
    """Return the order in which rows are visited, over as many epochs as it takes.

    Each epoch has an order of all rows, which the seed decides; rows that are left out are
    missing in it and change nothing else.

    Parameters
    ----------
    n
        Rows in all.
    dropped
        Places that are left out; not all of them.
    count
        Visits wanted.
    seed
        Seeds the orders.
    """
    kept = np.ones(n, dtype=bool)
    kept[list(dropped)] = False
    if not kept.any():
        raise ValueError("no row is left")
    order: list[Sequence[int]] = []
    found = epoch = 0
    while found < count:
        epoch_order = np.random.default_rng((seed, epoch)).permutation(n)
        order.append(epoch_order[kept[epoch_order]].tolist())
        found += len(order[-1])
        epoch += 1
    return [row for part in order for row in part][:count]
