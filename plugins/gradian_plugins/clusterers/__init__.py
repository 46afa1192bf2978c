"""Built-in clusterers."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import ClustererSpec

__all__ = ["gradian_clusterers"]

_HERE = "gradian_plugins.clusterers"


@hookimpl
def gradian_clusterers() -> Iterator[ClustererSpec]:
    """Yield what ``clustering.method`` can be."""
    yield ClustererSpec(
        name="auto",
        summary="declared clusters if there are any, else hdbscan, else kmeans",
        factory=f"{_HERE}.auto:AutoClusterer",
        config=f"{_HERE}.auto:AutoConfig",
        requires=("hdbscan", "sklearn"),
        extra="attribution",
    )
    yield ClustererSpec(
        name="declared",
        summary="the cluster or cluster_id of each row",
        factory=f"{_HERE}.declared:DeclaredClusterer",
    )
    yield ClustererSpec(
        name="hdbscan",
        summary="dense groups of similar texts; what lies between them is noise",
        factory=f"{_HERE}.density:HdbscanClusterer",
        config=f"{_HERE}.density:HdbscanConfig",
        requires=("hdbscan", "sklearn"),
        extra="attribution",
    )
    yield ClustererSpec(
        name="kmeans",
        summary="a given number of groups of similar texts",
        factory=f"{_HERE}.kmeans:KMeansClusterer",
        config=f"{_HERE}.kmeans:KMeansConfig",
        requires=("sklearn",),
        extra="attribution",
    )
    yield ClustererSpec(
        name="none",
        summary="all rows in one cluster",
        factory=f"{_HERE}.one:OneCluster",
    )
