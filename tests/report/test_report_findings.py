import numpy as np
import pytest

from gradian_core.attribution.agreement import Agreement
from gradian_core.attribution.clusters import summarise
from gradian_core.config.models import ClusteringSection
from gradian_core.findings import Finding, Severity
from gradian_core.protocols import ClusterAssignment
from gradian_core.report import findings as f
from gradian_core.report.attribution import AgreementReport
from gradian_core.report.join import overlaps
from gradian_core.report.model import FindingReport


def agreement(spearman):
    found = Agreement(n=1000, spearman=spearman, k=20, overlap=0.6, chance=0.02)
    return AgreementReport.of("graddot", found)


def replace_independent(agreed):
    return agreed.model_copy(update={"independent": False})


def test_an_engine_is_no_second_opinion_on_itself():
    found = f.engine_disagreement("tracin", replace_independent(agreement(1.0)))
    assert found.id == "attribution.cross_check_not_independent"
    assert found.severity is Severity.MEDIUM


def test_a_caveat_of_two_engines_is_said_once():
    found = list(f.engine_caveats([("a", "Beware."), ("b", "Beware."), ("b", "More.")]))
    assert [one.title for one in found] == ["a and b: Beware.", "b: More."]
    assert len(list(f.engine_caveats([("a", "Beware."), ("a", "Beware.")]))) == 1


def test_ignored_settings():
    assert f.ignored_settings("datainf", {}, "") is None
    found = f.ignored_settings("datainf", {"engine.normalize_query": True}, "graddot takes it.")
    assert "engine.normalize_query: True" in found.title
    assert found.detail.endswith("graddot takes it.")


def clusters(labels, scores):
    return summarise(
        ClusterAssignment(labels=np.asarray(labels), method="test"),
        np.asarray(scores, dtype=float),
        ["text"] * len(labels),
        settings=ClusteringSection(),
    )


@pytest.mark.parametrize(
    ("overlap", "severity"),
    [
        (1.0, None),
        (0.47, None),
        (0.46, Severity.MEDIUM),
        (0.3, Severity.MEDIUM),
        (0.29, Severity.HIGH),
        (0.0, Severity.HIGH),
    ],
)
def test_engine_disagreement(overlap, severity):
    # what the many rows say that hardly matter decides nothing
    for spearman in (0.9, -0.9):
        told = agreement(spearman).model_copy(update={"top_k_overlap": overlap})
        found = f.engine_disagreement("datainf", told)
        assert (found and found.severity) == severity
        if found:
            assert found.evidence["spearman"] == spearman
            assert f"{overlap:.0%}" in found.detail
            assert "2%" in found.detail


def test_engines_that_score_all_rows_alike_cannot_disagree():
    told = agreement(None).model_copy(update={"top_k_overlap": 0.0})
    assert f.engine_disagreement("datainf", told) is None


def test_rows_without_supervision():
    assert f.rows_without_supervision([], 10) is None
    few = f.rows_without_supervision(["a", "b"], 10)
    assert (few.severity, few.example_ids, few.evidence["share"]) == (
        Severity.MEDIUM,
        ("a", "b"),
        0.2,
    )
    assert f.rows_without_supervision(["a"] * 5, 10).severity is Severity.HIGH


def test_flat_influence():
    assert f.flat_influence(clusters([0] * 5 + [1] * 5, [-5.0] * 5 + [-1.0] * 5)) is None
    flat = f.flat_influence(clusters([0] * 5 + [1] * 5, [-1.5] * 5 + [-1.0] * 5))
    assert flat.id == "attribution.flat_influence"
    assert flat.evidence["highest_harm_ratio"] == pytest.approx(1.5)
    helpful = f.flat_influence(clusters([0] * 5 + [1] * 5, [1.0] * 10))
    assert helpful.title == "No training example has a negative score"
    single = f.flat_influence(clusters([0] * 5, [-1.0] * 5))
    assert single.id == "attribution.single_cluster"


def test_cluster_noise():
    assert f.cluster_noise(clusters([-1] * 4 + [0] * 5, [-1.0] * 9)) is None
    assert f.cluster_noise(clusters([0] * 5, [-1.0] * 5)) is None
    assert f.cluster_noise(()) is None
    noisy = f.cluster_noise(clusters([-1] * 5 + [0] * 5, [-1.0] * 10))
    assert noisy.evidence == {"n_noise": 5, "n_examples": 10}


def test_whole_sequence_and_parameters():
    assert f.whole_sequence_supervision([], 4, "why") is None
    whole = f.whole_sequence_supervision(["a"], 4, "The rows are raw text.")
    assert whole.detail.startswith("The rows are raw text. ")
    assert f.not_attributed_parameters([]) is None
    assert f.not_attributed_parameters(["b", "a"]).evidence == {"modules": ["a", "b"]}


def test_all_of_them_fit_into_a_report():
    found = [
        f.engine_disagreement("datainf", agreement(0.1).model_copy(update={"top_k_overlap": 0.1})),
        f.flat_influence(clusters([0] * 2 + [1] * 2, [-1.0] * 4)),
        f.no_capability_target(8),
        f.rows_without_supervision(["a"], 2),
        *f.engine_caveats([("tracin", "one checkpoint only")]),
        f.ignored_settings("datainf", {"engine.normalize_query": True}, ""),
        f.engine_disagreement("graddot", replace_independent(agreement(1.0))),
        f.flat_influence(clusters([0] * 3 + [1] * 3, [-1.0] * 6)),
        f.whole_sequence_supervision(["a"], 2, "Raw text."),
        f.not_attributed_parameters(["lm_head"]),
        f.cluster_noise(clusters([-1] * 5, [-1.0] * 5)),
    ]
    for finding in found:
        told = FindingReport.of(finding)
        assert told.id.startswith("attribution.")
        assert told.evidence == dict(finding.evidence)
        assert not told.title.endswith(".")


DUPLICATES = Finding(
    id="data.duplicates",
    severity=Severity.HIGH,
    title="x",
    fix="Keep one.",
    example_ids=("e2", "e1"),
)


def joined(findings, labels, scores):
    ids = [f"e{i}" for i in range(len(labels))]
    return list(overlaps(findings, clusters(labels, scores), np.asarray(labels), ids))


def test_a_defect_of_the_accused_rows_is_named():
    (found,) = joined([DUPLICATES], [0] * 4 + [1] * 6, [-4.0, -3.0, -5.0, -1.0] + [1.0] * 6)
    assert found.because_of == "data.duplicates"
    assert found.fix == "Keep one."
    assert found.example_ids == ("e1", "e2")
    assert found.evidence["rate_in_cluster"] == 0.5
    assert found.evidence["rate_elsewhere"] == 0.0
    assert found.evidence["n_in_top"] == 2


@pytest.mark.parametrize(
    ("example_ids", "scores"),
    [
        (("e1",), [-1.0] * 4 + [1.0] * 6),  # one row is a coincidence
        (("e1", "e2", "e4", "e5"), [-1.0] * 4 + [1.0] * 6),  # hardly more common than elsewhere
        (("e4", "e5", "e6"), [-1.0] * 4 + [1.0] * 6),  # other rows
        (("gone", "lost"), [-1.0] * 4 + [1.0] * 6),  # rows that are not in the data
        ((), [-1.0] * 4 + [1.0] * 6),
        (("e1", "e2"), [1.0] * 10),  # no harmful cluster
    ],
)
def test_no_overlap(example_ids, scores):
    defect = Finding(id="data.x", severity=Severity.LOW, title="x", example_ids=example_ids)
    assert joined([defect], [0] * 4 + [1] * 6, scores) == []


def test_one_cluster_overlaps_with_everything_and_so_with_nothing():
    assert joined([DUPLICATES], [0] * 4, [-1.0] * 4) == []
