"""HDBSCAN (Campello et al. 2013) on the embeddings, by the ``hdbscan`` package."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from gradian_core.config.models import Section
from gradian_core.protocols import ClusterAssignment, ClusterTask
from gradian_plugins.clusterers._labels import by_first_appearance

__all__ = ["HdbscanClusterer", "HdbscanConfig"]


class HdbscanConfig(Section):
    """What hdbscan reads of the ``clustering`` section."""

    min_cluster_size: int = Field(5, ge=2)
    """Smallest group that counts as a cluster."""


class HdbscanClusterer:
    """Dense groups of similar texts; what lies between them is noise (label -1).

    Rows are of unit length, so Euclidean distance ranks pairs as cosine similarity does. Time
    grows with the square of the number of rows: about 6 s for 8,000, a quarter of an hour for
    100,000.
    """

    def __init__(self, config: HdbscanConfig) -> None:
        self._min_cluster_size = config.min_cluster_size

    def cluster(self, task: ClusterTask) -> ClusterAssignment:
        """Run HDBSCAN; it has no random part."""
        import hdbscan

        n = len(task.texts)
        if n < self._min_cluster_size:
            noise = np.full(n, -1, dtype=np.int64)
            why = f"hdbscan found no cluster: clustering.min_cluster_size is more than {n} rows."
            return ClusterAssignment(labels=noise, method="hdbscan", notes=(why,))
        # one process: the pool of several costs more than it saves below 10,000 rows
        model = hdbscan.HDBSCAN(min_cluster_size=self._min_cluster_size, core_dist_n_jobs=1)
        labels = model.fit_predict(task.embed())
        return ClusterAssignment(labels=by_first_appearance(labels), method="hdbscan")
