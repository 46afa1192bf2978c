"""What the measurement has to say about itself."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gradian_core.evaluation.findings import evaluation_findings
from gradian_core.evaluation.result import CapabilityResult, ItemOutcome
from gradian_core.findings import Severity


def item(row, base, tuned, margin=None):
    return ItemOutcome(
        id=f"{row:012x}-{row}",
        row=row,
        prompt=f"p{row}",
        reference="r",
        base_output="b",
        tuned_output="t",
        base_score=base,
        tuned_score=tuned,
        margin=margin,
    )


CLEAR = CapabilityResult(
    name="capitals",
    metric="contains",
    proxy_used=False,
    items=tuple([item(i, 1.0, 0.0, 3.0) for i in range(6)] + [item(9, 1.0, 1.0)]),
    base=1.0,
    tuned=1 / 7,
    delta=-6 / 7,
    ci_low=-1.0,
    ci_high=-0.5,
    ci_level=0.95,
    verdict="regressed",
    base_failures=0,
)


def ids(result):
    return [finding.id for finding in evaluation_findings(result)]


def one(result, name):
    (found,) = [f for f in evaluation_findings(result) if f.id == f"attribution.{name}"]
    return found


def test_a_clear_regression_needs_no_words():
    assert evaluation_findings(CLEAR) == []


def test_gate_failed():
    noise = replace(CLEAR, delta=-0.125, ci_low=-0.5, ci_high=0.25, verdict="not significant")
    found = one(noise, "gate_failed")
    assert found.severity is Severity.HIGH
    assert "6 of 7 items changed" in found.detail
    assert "[-0.5000, +0.2500]" in found.detail
    # half width .375 against a delta of .125: nine times the items
    assert "about 63 (now 7)" in found.fix
    assert found.evidence["delta"] == -0.125


def test_gate_failed_with_a_delta_that_no_number_of_items_would_show():
    noise = replace(CLEAR, delta=-1e-4, ci_low=-0.4, ci_high=0.4, verdict="not significant")
    assert "far smaller than the noise" in one(noise, "gate_failed").fix


def test_gate_failed_because_nothing_changed():
    same = replace(
        CLEAR,
        items=(item(0, 1.0, 1.0), item(1, 1.0, 1.0)),
        delta=0.0,
        ci_low=0.0,
        ci_high=0.0,
        verdict="not significant",
    )
    assert one(same, "gate_failed").detail.startswith("No item changed: each of the 2")
    assert ids(same) == ["attribution.gate_failed", "attribution.no_item_regressed"]


def test_improved():
    better = replace(
        CLEAR,
        items=(item(0, 0.0, 1.0), item(1, 1.0, 1.0)),
        base=0.5,
        tuned=1.0,
        delta=0.5,
        ci_low=0.1,
        ci_high=0.9,
        verdict="improved",
        base_failures=1,
    )
    assert ids(better) == [
        "attribution.improved",
        "attribution.no_item_regressed",
        "attribution.base_failed_items",
    ]


def test_items_that_the_base_fails_too():
    result = replace(CLEAR, items=(item(4, 0.0, 0.0), *CLEAR.items), base_failures=1)
    found = one(result, "base_failed_items")
    assert "1 of 8" in found.title
    assert found.evidence["eval_ids"] == [item(4, 0, 0).id]
    assert found.example_ids == ()


@pytest.mark.parametrize(
    ("base", "proxy", "weak"),
    [(0.49, False, True), (0.5, False, False), (-2.1, True, True), (-2.0, True, False)],
)
def test_weak_base(base, proxy, weak):
    result = replace(CLEAR, base=base, proxy_used=proxy)
    assert ("attribution.base_model_weak" in ids(result)) == weak


def test_weak_preference():
    margins = [0.99, 1.0, -3.0, 5.0, None]
    items = [item(i, 1.0, 0.0, margin) for i, margin in enumerate(margins)]
    found = one(replace(CLEAR, items=(*items, item(8, 1.0, 1.0, -9.0))), "weak_preference")
    assert "2 of 4 regressed items" in found.title
    assert found.evidence["eval_ids"] == [items[0].id, items[2].id]
    assert found.evidence["mean_margin"] == pytest.approx(3.99 / 4)
    assert found.evidence["regressed"] == 5


def test_copies_are_counted_and_named():
    copies = tuple(replace(item(i, 1.0, 0.0, 3.0), prompt="p") for i in range(20))
    found = one(replace(CLEAR, items=copies, n_distinct=1), "repeated_eval_items")
    assert "20 eval items are 1 distinct ones" in found.title
    assert found.evidence["most_copies"] == 20


@pytest.mark.parametrize(("score", "severity"), [(0.0, Severity.HIGH), (1.0, Severity.MEDIUM)])
def test_answers_that_were_cut_off(score, severity):
    cut = replace(item(0, 1.0, score, 3.0), tuned_cut=True)
    result = replace(CLEAR, items=(cut, *CLEAR.items), max_new_tokens=32)
    found = one(result, "cut_answers")
    assert found.severity is severity
    assert "0 of 8 of the base model, 1 of 8 of the tuned model" in found.title
    assert "128" in found.fix
    assert found.evidence["regressed_and_cut"] == (score == 0.0)


def test_undecidable_is_no_finding_about_noise():
    few = replace(CLEAR, verdict="undecidable", reason="3 eval items decide nothing.")
    found = one(few, "gate_failed")
    assert "too little evidence" in found.title
    assert "3 eval items decide nothing." in found.detail
    assert found.evidence["verdict"] == "undecidable"


def test_proxy():
    assert "loglik" in one(replace(CLEAR, metric="loglik", proxy_used=True), "proxy_metric").title


def test_every_finding_has_advice_and_plain_evidence():
    everything = replace(
        CLEAR,
        items=(item(0, 0.0, 0.0), replace(item(1, 0.5, 0.2, 0.1), tuned_cut=True)),
        base=0.1,
        verdict="not significant",
        base_failures=1,
        proxy_used=False,
        n_distinct=1,
        max_new_tokens=8,
    )
    found = evaluation_findings(everything) + evaluation_findings(
        replace(
            everything, verdict="improved", items=(item(0, 0.0, 0.0),), proxy_used=True, base=-3
        )
    )
    assert len({f.id for f in found}) == 9
    for finding in found:
        assert finding.title
        assert finding.detail
        assert finding.fix
        assert finding.severity.rank < 5
        assert json.loads(json.dumps(dict(finding.evidence))) == finding.evidence
