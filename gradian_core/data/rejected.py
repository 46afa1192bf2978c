"""Rows that could not be read, where the rest of a data set is wanted all the same."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NOTHING", "Rejected"]


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows that were left out.

    Parameters
    ----------
    count
        How many.
    total
        Rows of the data set, these among them.
    reasons
        Place and reason of the first few, as sentences that name the file without its folder.
    lines
        Lines of the first few, from 1, where rows have lines.
    """

    count: int = 0
    total: int = 0
    reasons: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()


NOTHING = Rejected()
