import subprocess
import sys

import numpy as np
import pytest

from gradian_core.attribution.embed import Embedder
from gradian_core.config.models import ClusteringSection
from gradian_core.errors import UsageError
from gradian_core.protocols import Clusterer, ClusterTask
from gradian_plugins.clusterers import gradian_clusterers
from gradian_plugins.clusterers._labels import by_first_appearance
from gradian_plugins.clusterers.auto import AutoClusterer, AutoConfig
from gradian_plugins.clusterers.declared import DeclaredClusterer
from gradian_plugins.clusterers.density import HdbscanClusterer, HdbscanConfig
from gradian_plugins.clusterers.kmeans import KMeansClusterer, KMeansConfig
from gradian_plugins.clusterers.one import OneCluster

TOPICS = [
    *(f"the capital of country {i} is a large city" for i in range(12)),
    *(f"sort a list of integers in python {i}" for i in range(12)),
    *(f"boil the pasta in salted water for {i} minutes" for i in range(12)),
]
TRUTH = np.repeat([0, 1, 2], 12)


def task(texts=TOPICS, declared=None, seed=0):
    return ClusterTask(
        texts=texts,
        declared=[None] * len(texts) if declared is None else declared,
        embed=Embedder(texts, ClusteringSection(), seed),
        seed=seed,
    )


def auto(**changes):
    return AutoClusterer(AutoConfig(**changes))


def test_each_spec_can_be_built_and_used():
    from importlib import import_module

    specs = {spec.name: spec for spec in gradian_clusterers()}
    assert set(specs) == {"auto", "declared", "hdbscan", "kmeans", "none"}
    for spec in specs.values():
        module, name = spec.factory.split(":")
        factory = getattr(import_module(module), name)
        if spec.config is None:
            clusterer = factory()
        else:
            module, name = spec.config.split(":")
            config = getattr(import_module(module), name)
            section = ClusteringSection().model_dump()
            clusterer = factory(config(**{key: section[key] for key in config.model_fields}))
        assert isinstance(clusterer, Clusterer)
        found = clusterer.cluster(task(declared=["x", *[None] * 35]))
        assert found.labels.shape == (36,)


def test_declaring_imports_nothing_heavy():
    code = (
        "import sys, gradian_plugins.clusterers as c; list(c.gradian_clusterers());"
        "heavy = {'numpy', 'sklearn', 'pydantic', 'torch', 'rich'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_declared_sorts_names_and_groups_the_rest():
    found = DeclaredClusterer().cluster(task(list("abcde"), ["10", None, "2", "10", "b"]))
    by_row = [found.names[label] for label in found.labels.tolist()]
    assert by_row == ["10", "(none)", "2", "10", "b"]
    assert [name for _, name in sorted(found.names.items())] == ["2", "10", "(none)", "b"]
    assert found.notes == ("1 of 5 rows declare no cluster; they are (none).",)


def test_declared_by_all_rows_has_no_note():
    assert DeclaredClusterer().cluster(task(["a"], ["x"])).notes == ()


def test_declared_takes_any_name():
    names = ["9" * 5000, "\ud800", "", "²"]
    found = DeclaredClusterer().cluster(task(list("abcd"), names))
    assert sorted(found.names.values()) == sorted(names)


def test_declared_without_any():
    with pytest.raises(UsageError, match="no row of the data set has a cluster"):
        DeclaredClusterer().cluster(task())


@pytest.mark.parametrize(
    "clusterer",
    [
        KMeansClusterer(KMeansConfig(n_clusters=3)),
        HdbscanClusterer(HdbscanConfig(min_cluster_size=5)),
        auto(n_clusters=3),
    ],
)
def test_topics_are_found_and_found_again(clusterer):
    found = clusterer.cluster(task())
    np.testing.assert_array_equal(found.labels, TRUTH)
    np.testing.assert_array_equal(clusterer.cluster(task()).labels, found.labels)


@pytest.mark.parametrize("texts", [["one"], ["same"] * 7, ["", "..."], ["a", "a", "b"]])
@pytest.mark.parametrize(
    "clusterer", [KMeansClusterer(KMeansConfig()), HdbscanClusterer(HdbscanConfig()), auto()]
)
def test_few_and_equal_texts(clusterer, texts):
    labels = clusterer.cluster(task(texts)).labels
    assert labels.shape == (len(texts),)
    if not isinstance(clusterer, HdbscanClusterer):
        assert len(set(labels.tolist())) == max(1, len({text.strip(".") for text in texts}))


def test_kmeans_says_that_it_made_fewer_clusters():
    found = KMeansClusterer(KMeansConfig(n_clusters=5)).cluster(task(["a", "b"] * 4))
    assert len(set(found.labels.tolist())) == 2
    assert "2 clusters and not 5" in found.notes[0]


def test_hdbscan_marks_an_odd_text_as_noise_and_says_when_rows_are_few():
    hdbscan = HdbscanClusterer(HdbscanConfig(min_cluster_size=5))
    found = hdbscan.cluster(task([*TOPICS, "zyx wvu tsr"]))
    assert found.labels[-1] == -1
    few = hdbscan.cluster(task(["a", "b"]))
    assert few.labels.tolist() == [-1, -1]
    assert "more than 2 rows" in few.notes[0]


def test_auto_prefers_declared():
    found = auto().cluster(task(declared=["x", *[None] * 35]))
    assert found.method == "declared"
    assert "auto became declared" in found.notes[0]
    assert "35 of 36" in found.notes[1]


def test_auto_takes_hdbscan_where_it_tells_texts_apart():
    found = auto().cluster(task())
    assert found.method == "hdbscan"
    assert found.notes == ("clustering.method auto became hdbscan: no row declares a cluster.",)


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ([f"w{i} x{i} y{i}" for i in range(12)], "hdbscan found none"),
        (["a", "b"], "hdbscan found none"),
    ],
)
def test_auto_falls_back_to_kmeans_and_says_why(texts, why):
    found = auto(n_clusters=2).cluster(task(texts))
    assert found.method == "kmeans"
    assert why in found.notes[0]


def test_auto_takes_kmeans_after_a_single_cluster(monkeypatch):
    from gradian_core.protocols import ClusterAssignment

    clusterer = auto(n_clusters=3)
    labels = np.array([0] * 30 + [-1] * 6)
    single = ClusterAssignment(labels=labels, method="hdbscan")
    monkeypatch.setattr(clusterer._hdbscan, "cluster", lambda _: single)
    found = clusterer.cluster(task())
    assert found.method == "kmeans"
    assert "hdbscan found a single one" in found.notes[0]


def test_auto_spares_large_data_sets_the_quadratic_method(monkeypatch):
    monkeypatch.setattr("gradian_plugins.clusterers.auto._MOST_ROWS", 10)
    found = auto(n_clusters=3).cluster(task())
    assert found.method == "kmeans"
    assert "too slow" in found.notes[0]


def test_none_is_one_cluster():
    found = OneCluster().cluster(task(["a", "b"]))
    assert found.labels.tolist() == [0, 0]
    assert found.names == {0: "all examples"}


def test_labels_are_numbered_by_first_appearance():
    labels = by_first_appearance(np.array([5, -1, 2, 5, 9, 2, -1]))
    assert labels.tolist() == [0, -1, 1, 0, 2, 1, -1]
    assert by_first_appearance(np.array([3, 3, 1])).tolist() == [0, 0, 1]
