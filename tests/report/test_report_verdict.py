"""The verdict, for every combination that it is derived from."""

from __future__ import annotations

import pytest

from gradian_core.findings import Severity
from gradian_core.report.consensus import ConsensusReport
from gradian_core.report.model import FindingReport
from gradian_core.report.story import Story
from gradian_core.report.verdict import BASE_WEAK, verdict

RATE = FindingReport(id="config.lr_too_high", severity=Severity.CRITICAL, title="The rate is high")
MILD = FindingReport(id="config.no_warmup", severity=Severity.LOW, title="No warm-up")
DATA = FindingReport(id="data.duplicates", severity=Severity.CRITICAL, title="Copies")
WEAK = FindingReport(id=BASE_WEAK, severity=Severity.HIGH, title="Weak")


def agreed(kind, overlap=0.5):
    return ConsensusReport(
        verdict=kind, overlap=overlap, chance=0.1, top_k=10, concentrated_from=0.47,
        diffuse_below=0.3, rules_version=1, source="", engines=(), pairs=(), n_accused=3,
    )  # fmt: skip


def story(samples, consensus=None, findings=(), audited=True, report=None, **more):
    report = report or samples.poisoned()
    return Story(
        n_examples=report.n_examples,
        capability=report.capability,
        engine=report.engine,
        clusters=report.clusters,
        findings=list(findings),
        consensus=None if consensus is None else agreed(consensus),
        audited=audited,
        **more,
    )


@pytest.mark.parametrize(
    ("consensus", "findings", "audited", "kind", "why"),
    [
        ("concentrated", [], True, "data", "unlike engines blame the same rows"),
        ("concentrated", [MILD, DATA], True, "data", "50.0% of their 10 most harmful rows"),
        ("concentrated", [], False, "undetermined", "settings and logs were not looked at"),
        ("concentrated", [RATE], True, "undetermined", "the setup is at fault (The rate is high)"),
        ("diffuse", [RATE], True, "setup", "the setup is at fault (The rate is high)"),
        ("diffuse", [], True, "undetermined", "no common cause in the data shows"),
        ("diffuse", [MILD], True, "undetermined", "no common cause in the data shows"),
        ("undetermined", [], True, "undetermined", "agree in part"),
        # one group stands out, so the setup is not the only suspect
        ("undetermined", [RATE], True, "undetermined", "agree in part"),
        (None, [RATE], True, "undetermined", "one engine's ranking accuses nobody"),
        ("concentrated", [WEAK], True, "base_model", "little of this capability to lose"),
    ],
)
def test_a_regression(samples, consensus, findings, audited, kind, why):
    found = verdict(story(samples, consensus, findings, audited))
    assert found.kind == kind
    assert why in found.why


def test_agreement_in_part_and_nobody_who_stands_out_leave_the_setup(samples):
    flat = story(samples, "undetermined", [RATE], report=samples.flat())
    assert verdict(flat).kind == "setup"


def test_causes_come_before_their_effects(samples):
    effect = FindingReport(
        id="dynamics.loss_spikes", severity=Severity.CRITICAL, title="Spikes",
        because_of="config.lr_too_high",
    )  # fmt: skip
    assert story(samples, findings=[effect, RATE]).setup == [RATE, effect]


@pytest.mark.parametrize(
    ("gate", "kind"),
    [
        ("improved", "no_regression"),
        ("not significant", "no_regression"),
        ("undecidable", "undetermined"),
    ],
)
def test_the_gate_comes_first(samples, gate, kind):
    report = samples.poisoned()
    measured = report.capability.model_copy(update={"verdict": gate, "reason": "It is so."})
    report = report.model_copy(update={"capability": measured})
    found = verdict(story(samples, "concentrated", [RATE], report=report))
    assert (found.kind, found.why) == (kind, "It is so")
    # unless the gate is switched off
    off = story(samples, "concentrated", report=report, require_significant=False)
    assert verdict(off).kind == "data"


def test_without_a_capability_there_is_none(samples):
    report = samples.poisoned().model_copy(update={"capability": None})
    assert verdict(story(samples, report=report)) is None


def test_it_is_in_the_report_and_comes_back(samples, tmp_path):
    report = samples.poisoned()
    assert report.verdict.kind == "undetermined"
    assert '"verdict"' in report.to_json()
