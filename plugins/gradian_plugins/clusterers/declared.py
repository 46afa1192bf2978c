"""The taxonomy that the rows bring along."""

from __future__ import annotations

import re

import numpy as np

from gradian_core.errors import UsageError
from gradian_core.protocols import ClusterAssignment, ClusterTask

__all__ = ["DeclaredClusterer"]

_UNDECLARED = "(none)"


class DeclaredClusterer:
    """One cluster for each ``cluster`` / ``cluster_id``; rows without one form a group too."""

    def cluster(self, task: ClusterTask) -> ClusterAssignment:
        """Group rows by what they declare.

        Raises
        ------
        UsageError
            If no row declares a cluster.
        """
        missing = sum(name is None for name in task.declared)
        if missing == len(task.declared):
            raise UsageError(
                "clustering.method is declared, but no row of the data set has a cluster or "
                "cluster_id.",
                hint="Add one to the rows, or use clustering.method: auto.",
            )
        filled = [_UNDECLARED if name is None else name for name in task.declared]
        names = sorted(set(filled), key=_natural)
        labels = {name: label for label, name in enumerate(names)}
        gap = f"{missing} of {len(filled)} rows declare no cluster; they are {_UNDECLARED}."
        return ClusterAssignment(
            labels=np.array([labels[name] for name in filled], dtype=np.int64),
            names=dict(enumerate(names)),
            method="declared",
            notes=(gap,) if missing else (),
        )


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sort 2 before 10."""
    # cut: int() refuses more than a few thousand digits, and a name may be anything
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+", name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
