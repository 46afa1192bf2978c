"""No clustering."""

from __future__ import annotations

import numpy as np

from gradian_core.protocols import ClusterAssignment, ClusterTask

__all__ = ["OneCluster"]


class OneCluster:
    """Puts every row into the same cluster."""

    def cluster(self, task: ClusterTask) -> ClusterAssignment:
        """Return one cluster for all rows."""
        labels = np.zeros(len(task.texts), dtype=np.int64)
        return ClusterAssignment(labels=labels, names={0: "all examples"}, method="none")
