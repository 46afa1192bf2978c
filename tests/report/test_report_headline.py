import re
from dataclasses import replace

import numpy as np
import pytest

from gradian_core.findings import Finding, Severity
from gradian_core.report.findings import no_capability_target

CRITICAL = Finding(
    id="config.lr_too_high",
    severity=Severity.CRITICAL,
    title="Learning rate 2e-3",
    fix="Use 2e-4.",
)
NUMBERS = (
    "contains 0.9375 to 0.4375 (-0.5000, 95% CI [-0.7500, -0.2500]) over 16 items, "
    "8 of which got worse"
)


def sentences(text):
    return re.split(r"(?<=\.) (?=[A-Z])", text)


def test_regressed_and_one_group_stands_out(samples):
    what, cause, how_sure, next_step = sentences(samples.poisoned().headline)
    assert what == f"capitals regressed: {NUMBERS}."
    assert cause == (
        "The cause is undetermined: unlike engines were not compared, and one engine's ranking "
        "accuses nobody; cluster 0 (4 of 12 rows, 97.5% of the negative influence, "
        "67.7 times as much per row as the others) stands out in the ranking."
    )
    assert how_sure == (
        "Confidence: graddot confirms the ranking (70% of the 10 most harmful rows in common, 10% "
        "by chance); the base model fails 1 of the items too, which no training row explains; the "
        "base model held 2 of the 8 that got worse by less than 1 nat, so almost any fine-tune "
        "would have tipped them."
    )
    assert next_step.startswith("Next: give the run folder with --run")


def test_others_without_any_harm_give_no_ratio(samples):
    examples = [samples.example(i, "q", "a") for i in range(6)]
    lane = samples.attribution(examples, [-1.0] * 3 + [1.0] * 3, labels=[0] * 3 + [1] * 3)
    text = samples.poisoned(examples=examples, attribution=lane).headline
    assert "100.0% of the negative influence)" in text
    assert "times as much" not in text


def test_discovered_clusters_are_named_by_number_and_terms(samples):
    examples = [samples.example(i, "invoice total", "a") for i in range(3)]
    examples += [samples.example(i, "poem about spring", "b") for i in range(3, 9)]
    lane = samples.attribution(examples, [-9.0] * 3 + [-1.0] * 6, labels=[4] * 3 + [5] * 6)
    text = samples.poisoned(examples=examples, attribution=lane).headline
    assert "cluster 4 (invoice, total) (3 of 9 rows, 81.8%" in text


@pytest.mark.parametrize(
    ("overlap", "says"),
    [
        (0.47, "graddot confirms the ranking (47% of the"),
        (0.46, "graddot confirms the ranking only in part (46% of the"),
        (0.3, "graddot confirms the ranking only in part (30% of the"),
        (0.29, "graddot ranks the rows differently (29% of the"),
    ],
)
def test_agreement_about_the_most_harmful_rows_is_stated(samples, overlap, says):
    examples = [samples.example(i, "q", "a") for i in range(6)]
    lane = samples.attribution(examples, [-1.0] * 3 + [1.0] * 3, labels=[0] * 3 + [1] * 3)
    agreement = lane.engine.agreement.model_copy(update={"top_k_overlap": overlap})
    lane = replace(lane, engine=lane.engine.model_copy(update={"agreement": agreement}))
    assert f"Confidence: {says}" in samples.poisoned(examples=examples, attribution=lane).headline


@pytest.mark.parametrize(
    ("spearman", "says"),
    [
        (None, "the agreement of datainf with graddot is undefined"),
        ("none", "no second engine checked the ranking of datainf"),
    ],
)
def test_no_agreement_is_stated(samples, spearman, says):
    examples = [samples.example(i, "q", "a") for i in range(6)]
    lane = samples.attribution(
        examples, [-1.0] * 3 + [1.0] * 3, labels=[0] * 3 + [1] * 3, spearman=spearman
    )
    assert f"Confidence: {says}" in samples.poisoned(examples=examples, attribution=lane).headline


def test_an_engine_that_computes_the_same_confirms_nothing(samples):
    examples = [samples.example(i, "q", "a") for i in range(6)]
    lane = samples.attribution(examples, [-1.0] * 3 + [1.0] * 3, labels=[0] * 3 + [1] * 3)
    same = lane.engine.agreement.model_copy(update={"independent": False, "spearman": 1.0})
    lane = replace(lane, engine=lane.engine.model_copy(update={"agreement": same}))
    text = samples.poisoned(examples=examples, attribution=lane).headline
    assert "nothing confirms the ranking: graddot is no independent check of datainf" in text
    assert "graddot confirms" not in text


def test_flat(samples):
    what, cause, *_ = sentences(samples.flat().headline)
    assert what == f"capitals regressed: {NUMBERS}."
    assert cause.endswith("no group of training rows stands out.")


@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 2, 2], [0] * 5 + [1], [-1] * 5 + [0]])
def test_groups_of_too_few_rows_are_no_evidence(samples, labels):
    examples = [samples.example(i, "q", "a") for i in range(6)]
    lane = samples.attribution(examples, -np.ones(6), labels=labels)
    text = samples.poisoned(examples=examples, attribution=lane).headline
    assert "too few clusters have 3 rows to tell whether a group stands out" in text
    assert "setup" not in text


def test_all_groups_that_stand_out_are_named(samples):
    examples = [samples.example(i, "q", "a") for i in range(30)]
    labels = [0] * 4 + [1] * 4 + [2] * 22
    lane = samples.attribution(examples, [-9.0] * 8 + [-0.1] * 22, labels=labels)
    text = samples.poisoned(examples=examples, attribution=lane).headline
    assert re.search(r"clusters 0 .*\(4 of 30 rows.* and 1 .*\(4 of 30 rows.* stand out", text)


def test_a_single_cluster_is_no_verdict_about_the_setup(samples):
    examples = [samples.example(i, "q", "a") for i in range(6)]
    lane = samples.attribution(examples, -np.ones(6), labels=[0] * 6)
    text = samples.poisoned(examples=examples, attribution=lane).headline
    assert "all training rows are in one cluster" in text
    assert "setup" not in text


def test_gate_failed(samples):
    what, next_step = sentences(
        samples.poisoned(capability=samples.capability("not significant")).headline
    )
    assert what == (
        "No diagnosis for capitals: contains 0.9375 to 0.8750 (-0.0625, 95% CI [-0.1875, "
        "+0.0625]) over 16 items, 1 of which got worse; the interval includes zero; scores "
        "are listed, but they may rank noise."
    )
    assert next_step.startswith("Next: add eval items")


def test_a_gate_that_was_switched_off_is_named(samples):
    report = samples.poisoned(
        capability=samples.capability("not significant"), require_significant=False
    )
    assert report.headline.startswith("capitals may have regressed: contains 0.9375 to 0.8750")
    assert "includes zero, and the gate is off. The cause is" in report.headline


def test_gate_failed_without_scores(samples):
    text = samples.poisoned(
        capability=samples.capability("not significant"), attribution=None
    ).headline
    assert "includes zero. Next" in text


def test_improved(samples):
    what, *_, next_step = sentences(
        samples.poisoned(capability=samples.capability("improved")).headline
    )
    assert what.startswith("capitals improved: contains 0.4375 to 0.9375 (+0.5000")
    assert what.endswith("there is no regression to explain.")
    assert next_step.startswith("Next: if something got worse")


def test_no_eval_target(samples):
    text = samples.poisoned(capability=None, findings=[no_capability_target(8)]).headline
    what, next_step = sentences(text)
    assert what.startswith("No diagnosis: there is no eval data set")
    assert (
        next_step == "Next: give --eval-dataset with items that the tuned model should get right."
    )


def test_weak_base_model_and_likelihood_are_hedges(samples):
    weak = Finding(id="attribution.base_model_weak", severity=Severity.MEDIUM, title="weak")
    text = samples.poisoned(
        capability=samples.capability(proxy_used=True), findings=[weak]
    ).headline
    assert "the base model hardly had this capability, so data explains little" in text
    assert "the metric is a likelihood, which format alone can move" in text


@pytest.mark.parametrize("verdict", ["regressed", "improved", "not significant"])
def test_critical_findings_come_first(samples, verdict):
    others = [Finding(id=f"data.x{i}", severity=Severity.CRITICAL, title="bad") for i in range(4)]
    text = samples.poisoned(
        capability=samples.capability(verdict), findings=[CRITICAL, CRITICAL, *others]
    ).headline
    assert sentences(text)[-1] == (
        "Next: fix config.lr_too_high, data.x0, data.x1 and 2 more first, which can explain the "
        "change alone, and run again."
    )


def test_regressed_without_attribution(samples):
    text = samples.poisoned(attribution=None).headline
    assert "no training rows were scored. Confidence: the base model fails 1" in text
    assert text.endswith("Next: run gradian attribute to rank the training rows.")


def test_audit(samples):
    audit = {"capability": None, "attribution": None}
    text = samples.poisoned(**audit).headline
    assert text == (
        "The audit found 2 faults (1 high, 1 medium); the worst: 2 rows are equal. "
        "Next: Keep one of them."
    )
    text = samples.poisoned(**audit, findings=[CRITICAL]).headline
    assert "1 fault (1 critical); the worst: Learning rate 2e-3. Next: Use 2e-4." in text
    assert samples.poisoned(**audit, findings=[]).headline == "The audit of 12 rows found no fault."


def test_at_most_four_sentences(samples):
    for report in (samples.poisoned(), samples.flat(), samples.hostile()):
        assert len(sentences(report.headline)) <= 4


def test_hostile_names_are_shortened_and_printable(samples):
    text = samples.hostile().headline
    assert text.isprintable()
    assert len(text) < 1500
