"""One root cause, one leading finding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_core.audit.fold import CAUSES, fold, groups
from gradian_core.findings import Finding, Severity

NAMES = sorted({*CAUSES, *(cause for causes in CAUSES.values() for cause in causes)})


def finding(name, severity="medium", **values):
    return Finding(id=name, severity=Severity(severity), title=name, **values)


def folded(*findings):
    return [
        (group.lead.id, [other.id for other in group.others]) for group in groups(fold(findings))
    ]


def test_a_short_sequence_length_is_one_fault():
    assert folded(
        finding("data.no_supervised_tokens", "critical"),
        finding("data.completion_truncated", "critical"),
        finding("data.truncated", "low"),
        finding("config.max_seq_length_vs_data", "high"),
        finding("data.tiny_dataset", "low"),
    ) == [
        (
            "config.max_seq_length_vs_data",
            ["data.completion_truncated", "data.no_supervised_tokens", "data.truncated"],
        ),
        ("data.tiny_dataset", []),
    ]


def test_a_high_rate_explains_the_dynamics():
    assert folded(
        finding("dynamics.loss_spike"),
        finding("dynamics.always_clipping"),
        finding("config.small_effective_batch"),
        finding("config.lr_too_high", "high"),
    ) == [
        (
            "config.lr_too_high",
            ["config.small_effective_batch", "dynamics.always_clipping", "dynamics.loss_spike"],
        )
    ]


def test_what_follows_from_a_lost_loss():
    assert folded(
        finding("dynamics.nan_loss", "critical"),
        finding("dynamics.loss_plateau"),
        finding("config.adapter_weights_dead", "high"),
        finding("config.no_eval_set", "low"),
    ) == [
        ("dynamics.nan_loss", ["config.adapter_weights_dead", "dynamics.loss_plateau"]),
        ("config.no_eval_set", []),
    ]


def test_the_group_with_the_worst_finding_comes_first():
    leads = [
        lead
        for lead, _ in folded(
            finding("data.duplicates", "high"),
            finding("config.pad_equals_eos", "medium"),
            finding("data.missing_eos", "critical"),
            finding("data.tiny_dataset", "critical"),
        )
    ]
    assert leads == ["data.tiny_dataset", "config.pad_equals_eos", "data.duplicates"]


def test_a_cause_must_name_the_rows():
    cut = finding("data.completion_truncated", "low", example_ids=("a-0", "b-1"))
    other = finding("data.no_supervised_tokens", "low", example_ids=("c-2", "d-3"))
    assert len(folded(cut, other)) == 2
    same = finding("data.no_supervised_tokens", "low", example_ids=("a-0", "c-2"))
    assert len(folded(cut, same)) == 1


def test_a_remark_explains_no_fault():
    assert len(folded(finding("config.pad_equals_eos", "info"), finding("data.missing_eos"))) == 2


def test_a_check_that_knows_better_is_believed_if_the_cause_was_found():
    own = finding("data.duplicates", because_of="data.tiny_dataset")
    assert folded(own, finding("data.tiny_dataset", "low")) == [
        ("data.tiny_dataset", ["data.duplicates"])
    ]
    (alone,) = fold([own])
    assert alone.because_of is None


def test_findings_of_one_check_stand_together():
    first, second = finding("house.a", "high"), finding("house.a", "low")
    (group,) = groups(fold([second, first]))
    assert group.lead.severity is Severity.HIGH
    assert group.others == (second,)


def test_a_chain_that_bites_its_tail():
    a = finding("house.a", because_of="house.b")
    b = finding("house.b", because_of="house.a")
    c = finding("house.c", because_of="house.a")
    me = finding("house.d", because_of="house.d")
    assert {group.lead.id for group in groups(fold([a, b, c, me]))} == {
        "house.a",
        "house.b",
        "house.c",
        "house.d",
    }


def test_the_table_has_no_circles():
    for name in CAUSES:
        seen, todo = set(), [name]
        while todo:
            for cause in CAUSES.get(todo.pop(), ()):
                assert cause != name
                if cause not in seen:
                    seen.add(cause)
                    todo.append(cause)


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(list(Severity))), max_size=12))
def test_nothing_is_lost_and_the_order_of_arrival_does_not_matter(drawn):
    findings = [finding(name, severity) for name, severity in drawn]
    result = fold(findings)
    assert sorted((f.id, f.severity) for f in result) == sorted(
        (f.id, f.severity) for f in findings
    )
    assert fold(reversed(findings)) == result
    assert fold(result) == result
    worst = [group.worst.rank for group in groups(result)]
    assert worst == sorted(worst)


@pytest.mark.parametrize("name", NAMES)
def test_the_table_names_checks(name):
    from gradian_checks import config, data, dynamics

    known = {spec.name for module in (config, data, dynamics) for spec in module.gradian_checks()}
    assert name in known


def test_a_cause_that_was_not_found_gives_way_to_the_next_one():
    late = Finding(
        id="dynamics.nan_loss", severity=Severity.HIGH, title="n", because_of="config.absent"
    )
    cause = Finding(id="config.lr_too_high", severity=Severity.HIGH, title="l")
    assert [(f.id, f.because_of) for f in fold([late, cause])] == [
        ("config.lr_too_high", None),
        ("dynamics.nan_loss", "config.lr_too_high"),
    ]
    assert [f.because_of for f in fold([late])] == [None]


def test_no_finding_is_lost_if_two_with_one_id_have_different_causes():
    cause = Finding(id="h.cause", severity=Severity.HIGH, title="cause")
    one = Finding(id="h.twice", severity=Severity.HIGH, title="1", because_of="h.cause")
    other = Finding(id="h.twice", severity=Severity.LOW, title="2")
    third = Finding(id="h.third", severity=Severity.LOW, title="3", because_of="h.twice")
    told = [other, one, cause, third]
    assert sorted(f.title for f in fold(told)) == ["1", "2", "3", "cause"]
