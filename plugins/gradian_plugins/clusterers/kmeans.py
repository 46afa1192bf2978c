"""k-means on the embeddings."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from gradian_core.config.models import Section
from gradian_core.protocols import ClusterAssignment, ClusterTask
from gradian_plugins.clusterers._labels import by_first_appearance

__all__ = ["KMeansClusterer", "KMeansConfig"]

_STARTS = 10
_DECIMALS = 9
"""Points closer than this differ by rounding errors only, and would make empty clusters."""


class KMeansConfig(Section):
    """What k-means reads of the ``clustering`` section."""

    n_clusters: int = Field(8, ge=1)
    """Number of clusters; fewer where there are fewer distinct texts."""


class KMeansClusterer:
    """A given number of groups of similar texts."""

    def __init__(self, config: KMeansConfig) -> None:
        self._n_clusters = config.n_clusters

    def cluster(self, task: ClusterTask) -> ClusterAssignment:
        """Run k-means from ten seeded starts and keep the best."""
        from sklearn.cluster import KMeans

        points = np.round(task.embed(), _DECIMALS)
        distinct = len(np.unique(points, axis=0))
        n_clusters = min(self._n_clusters, distinct)
        fewer = (
            f"kmeans has {n_clusters} clusters and not {self._n_clusters}: no more texts differ."
        )
        model = KMeans(
            n_clusters=n_clusters, n_init=_STARTS, random_state=task.seed, algorithm="lloyd"
        )
        labels = model.fit_predict(points)
        return ClusterAssignment(
            labels=by_first_appearance(labels),
            method="kmeans",
            notes=(fewer,) if n_clusters < self._n_clusters else (),
        )
