"""Shares, severities and ids: what all checks of data say in the same words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from gradian_core.audit.facts import TokenFacts
from gradian_core.findings import Severity

__all__ = ["Steps", "grade", "is_strictly_above", "milder", "pick_ids", "plural", "sample_note"]

Steps = Sequence[tuple[float, Severity]]
"""``(share, severity)`` pairs; the severity holds for shares above it."""


def grade(share: float, steps: Steps) -> Severity | None:
    """Return the worst severity whose share is exceeded, None if none is."""
    reached = [severity for limit, severity in steps if is_strictly_above(share, limit)]
    return min(reached, key=lambda severity: severity.rank, default=None)


def is_strictly_above(share: float, limit: float) -> bool:
    """Whether a share lies above a limit by more than the rounding of a division."""
    return share > limit + 1e-12


def milder(severity: Severity) -> Severity:
    """Return the next milder severity."""
    order = list(Severity)
    return order[min(severity.rank + 1, len(order) - 1)]


def pick_ids(ids: Sequence[str], positions: Iterable[int] | NDArray[np.integer]) -> tuple[str, ...]:
    """Return the ids of rows, in the order of the positions."""
    return tuple(ids[int(i)] for i in positions)


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Return ``1 row`` or ``1,204 rows``."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def sample_note(tokens: TokenFacts) -> str:
    """Return what to add where only a sample of the rows was tokenised; empty otherwise."""
    if tokens.sampled is None:
        return ""
    return f" Measured on a random sample of {plural(len(tokens.tokens), 'row')}."
