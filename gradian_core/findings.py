"""Findings: what a check or a stage of the attribution has to say.

A finding is evidence plus advice. It is also the only way in which a stage says that it
skipped, degraded or guessed something (no silent fallback).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Finding", "Severity"]


class Severity(enum.StrEnum):
    """How much a finding matters, worst first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the worst severity, 4 for the mildest."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing worth telling the user.

    Parameters
    ----------
    id
        Dotted name: family and name, such as ``data.duplicates``.
    severity
        How much it matters.
    title
        One line that can stand alone.
    detail
        What it means for this run.
    fix
        What to do, with numbers where there are any. Empty where nothing has to be done.
    evidence
        The values that made it fire. Plain JSON values only.
    example_ids
        Ids of the training examples concerned, worst first.
    because_of
        Id of the finding that this one is a consequence of, if there is one.
    """

    id: str
    severity: Severity
    title: str
    detail: str = ""
    fix: str = ""
    evidence: Mapping[str, object] = field(default_factory=dict)
    example_ids: tuple[str, ...] = ()
    because_of: str | None = None
