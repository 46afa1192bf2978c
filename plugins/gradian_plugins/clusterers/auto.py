"""The clusterer for those who have not chosen one."""

from __future__ import annotations

import dataclasses

import numpy as np
from pydantic import Field

from gradian_core.config.models import Section
from gradian_core.protocols import ClusterAssignment, ClusterTask
from gradian_plugins.clusterers.declared import DeclaredClusterer
from gradian_plugins.clusterers.density import HdbscanClusterer, HdbscanConfig
from gradian_plugins.clusterers.kmeans import KMeansClusterer, KMeansConfig

__all__ = ["AutoClusterer", "AutoConfig"]

_MOST_ROWS = 20_000
"""hdbscan takes about 40 s for as many, and grows with the square of the rows."""


class AutoConfig(Section):
    """What auto reads of the ``clustering`` section."""

    n_clusters: int = Field(8, ge=1)
    """Number of clusters, should it come to kmeans."""
    min_cluster_size: int = Field(5, ge=2)
    """Smallest cluster, should it come to hdbscan."""


class AutoClusterer:
    """Takes declared clusters if there are any, else hdbscan, else kmeans.

    kmeans has its turn where hdbscan tells nothing apart (everything noise, or one cluster)
    and where there are too many rows for it.
    """

    def __init__(self, config: AutoConfig) -> None:
        self._hdbscan = HdbscanClusterer(HdbscanConfig(min_cluster_size=config.min_cluster_size))
        self._kmeans = KMeansClusterer(KMeansConfig(n_clusters=config.n_clusters))

    def cluster(self, task: ClusterTask) -> ClusterAssignment:
        """Choose a method and say in the notes which and why."""
        if any(name is not None for name in task.declared):
            found = DeclaredClusterer().cluster(task)
            return _because(found, "the rows declare clusters")
        if len(task.texts) > _MOST_ROWS:
            why = f"hdbscan is too slow for more than {_MOST_ROWS} rows"
            return _because(self._kmeans.cluster(task), why)

        dense = self._hdbscan.cluster(task)
        n_clusters = len(np.unique(dense.labels[dense.labels >= 0]))
        if n_clusters > 1:
            return _because(dense, "no row declares a cluster")
        why = "no row declares a cluster, and hdbscan found " + (
            "a single one" if n_clusters else "none"
        )
        return _because(self._kmeans.cluster(task), why)


def _because(found: ClusterAssignment, why: str) -> ClusterAssignment:
    note = f"clustering.method auto became {found.method}: {why}."
    return dataclasses.replace(found, notes=(note, *found.notes))
