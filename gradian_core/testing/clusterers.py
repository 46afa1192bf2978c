"""What a clusterer promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gradian_core.errors import GradianError
from gradian_core.plugins.record import Provided
from gradian_core.plugins.registry import Registry
from gradian_core.protocols import ClusterAssignment, Clusterer, ClusterTask
from gradian_core.specs import ClustererSpec
from gradian_core.testing.hostile import HOSTILE
from gradian_core.testing.promise import Promise, Test, each, require

__all__ = ["promises_of"]

_TOPICS = ("the capital of country {}", "sort list {} in Python", "boil pasta for {} minutes")


def promises_of(registry: Registry, provided: Provided[ClustererSpec]) -> Iterator[Promise]:
    """Yield the promises of one clusterer."""
    name = provided.spec.name
    tests: list[Test[Clusterer]] = [
        ("labels", "every row gets one whole number, from -1 upwards", _labels),
        ("deterministic", "the same rows give the same clusters", _repeats),
        ("edges", "one row, equal rows and hostile texts crash nothing", _edges),
    ]
    yield from each(f"clusterer:{name}", lambda: registry.create("clusterer", name), tests)


def _texts(n: int = 24) -> list[str]:
    return [_TOPICS[i % len(_TOPICS)].format(i) for i in range(n)]


def _cluster(clusterer: Clusterer, texts: Sequence[str]) -> ClusterAssignment:
    def embed() -> NDArray[np.float64]:
        # By topic, with a small shift for each row: neither random nor learned.
        points = np.zeros((len(texts), len(_TOPICS)))
        for i in range(len(texts)):
            points[i, i % len(_TOPICS)] = 1.0 + 1e-3 * i
        return points

    declared = [f"group {i % 2}" for i in range(len(texts))]
    task = ClusterTask(texts=tuple(texts), declared=tuple(declared), embed=embed, seed=0)
    found = clusterer.cluster(task)
    require(
        isinstance(found, ClusterAssignment), f"It returns {type(found).__name__}, no assignment."
    )
    labels = np.asarray(found.labels)
    require(labels.shape == (len(texts),), f"{labels.shape} labels for {len(texts)} rows.")
    require(labels.dtype.kind == "i", f"The labels are {labels.dtype}, no signed whole numbers.")
    require((labels >= -1).all(), "A label is below -1.")
    strangers = set(found.names) - set(labels.tolist())
    require(not strangers, f"It names labels that no row has: {sorted(strangers)}.")
    require(found.method.strip(), "The assignment does not say by which method it was made.")
    return found


def _labels(clusterer: Clusterer) -> None:
    _cluster(clusterer, _texts())


def _repeats(clusterer: Clusterer) -> None:
    one, other = _cluster(clusterer, _texts()), _cluster(clusterer, _texts())
    same = np.array_equal(one.labels, other.labels) and dict(one.names) == dict(other.names)
    require(same, "Asked again, it gives other clusters.")


def _edges(clusterer: Clusterer) -> None:
    for texts in (["one"], ["same"] * 12, list(HOSTILE)):
        try:
            _cluster(clusterer, texts)
        except GradianError as error:
            # To refuse is an answer, if it is written for people.
            require(error.message, "The error has no message.")
