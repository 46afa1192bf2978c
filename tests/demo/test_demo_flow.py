"""The main job, end to end, on the embedded model: what the README's first command shows."""

from __future__ import annotations

import json

import pytest

from gradian_core.cli.proof import proof_lines
from gradian_core.config.load import load_config
from gradian_core.data.files import dataset_from_rows
from gradian_core.errors import UsageError
from gradian_core.findings import Severity
from gradian_core.flows.attribute import attribute
from gradian_core.flows.demo import run_demo

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
AUDIT = ("config.", "data.", "dynamics.")


def above_low(report):
    """Return the ids of what the audit calls worse than low."""
    return {
        finding.id
        for finding in report.findings
        if finding.id.startswith(AUDIT) and finding.severity.rank < Severity.LOW.rank
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_the_planted_cluster_is_named_and_its_removal_brings_the_capability_back(seed, tmp_path):
    outcome = run_demo(tmp_path / "demo", seed=seed)
    report = outcome.report

    assert report.capability.base == 1.0
    assert report.capability.verdict == "regressed"
    assert report.capability.tuned <= 0.75
    assert report.capability.ci_high < 0.0

    accused = report.clusters[0]
    assert outcome.accused == accused
    assert accused.share_of_negative > 0.5
    assert outcome.n_accused_planted >= 0.9 * 72
    assert accused.n <= 80, "the accused cluster holds more than the planted rows and a few others"

    assert outcome.without_accused.tuned >= 0.95
    # dropping as many other rows does not do it
    assert outcome.without_random.tuned <= outcome.without_accused.tuned - 0.15

    # the recipe is a sane one: nothing in it explains what the rows did
    assert above_low(report) == set()
    assert any(finding.id.startswith("config.") for finding in report.findings), "not audited"

    assert len(report.scores.score) == report.n_examples
    lines = "\n".join(proof_lines(outcome, tmp_path / "demo"))
    assert "72 wrong rows were planted" in lines
    config = tmp_path / "demo" / "gradian.yaml"
    assert f"  gradian attribute --config {config} --capability capitals\n" in lines
    assert "without the accused cluster" in lines


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_held_against_the_clean_control(seed, tmp_path):
    outcome = run_demo(tmp_path / "demo", scenario="clean", seed=seed)
    report = outcome.report
    assert report.capability.verdict != "regressed"
    assert report.capability.tuned >= 0.95
    assert outcome.accused is None
    assert above_low(report) == set()
    assert not (tmp_path / "demo/planted.json").exists()
    assert "no row is wrong" in "\n".join(proof_lines(outcome, tmp_path / "demo"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", ["truncated-json", "refusals"])
def test_other_planted_rows_break_their_capability(name, seed, tmp_path):
    # no claim about the accused cluster: grouped by words, these rows fall into several
    outcome = run_demo(tmp_path / "demo", scenario=name, seed=seed)
    assert outcome.report.capability.base == 1.0
    assert outcome.report.capability.verdict == "regressed"
    assert not {name for name in above_low(outcome.report) if not name.startswith("data.")}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_twelve_epochs_are_the_settings_fault(seed, tmp_path):
    outcome = run_demo(tmp_path / "demo", scenario="twelve-epochs", seed=seed)
    assert outcome.report.capability.verdict == "regressed"
    assert {"config.lr_too_high", "config.overtraining"} <= above_low(outcome.report)
    assert outcome.sane_settings.tuned >= 0.95
    assert "usual settings" in "\n".join(proof_lines(outcome, tmp_path / "demo"))


def test_the_run_that_it_leaves_is_an_ordinary_one(tmp_path):
    first = run_demo(tmp_path / "demo", seed=0, keep=True)
    left = {path.name for path in (tmp_path / "demo").iterdir()}
    assert left == {
        ".gradian",
        "base",
        "eval.jsonl",
        "gradian.yaml",
        "planted.json",
        "run",
        "train.jsonl",
        "without-accused",
        "without-random",
    }
    state = json.loads((tmp_path / "demo/run/trainer_state.json").read_text())
    assert state["log_history"][-1]["step"] == state["global_step"] == state["max_steps"]
    examples = dataset_from_rows(first.scenario.train)
    planted = json.loads((tmp_path / "demo/planted.json").read_text())
    assert planted == [examples[i].id for i in first.scenario.planted]

    config = load_config(tmp_path / "demo/gradian.yaml", {"cache_dir": tmp_path / "demo/.gradian"})
    again = attribute(config, capability="capitals")
    assert again.to_json() == first.report.to_json()
    assert again.scores.score.tolist() == first.report.scores.score.tolist()


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("important")
    with pytest.raises(UsageError, match=r"thesis\.tex"):
        run_demo(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_unknown_scenario_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no scenario poison") as refused:
        run_demo(tmp_path / "demo", scenario="poison")
    assert "truncated-json" in refused.value.hint
    assert not (tmp_path / "demo").exists()
