"""The main job, end to end, on the embedded model: what the README's first command shows."""

from __future__ import annotations

import json

import pytest

from gradian_core.cli.proof import proof_lines
from gradian_core.config.load import load_config
from gradian_core.demo.dataset import demo_rows
from gradian_core.errors import UsageError
from gradian_core.flows.attribute import attribute
from gradian_core.flows.demo import run_demo


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_planted_cluster_is_named_and_its_removal_brings_the_capability_back(seed, tmp_path):
    outcome = run_demo(tmp_path / "demo", seed=seed)
    report = outcome.report

    assert report.capability.base == 1.0
    assert report.capability.verdict == "regressed"
    assert report.capability.ci_high < 0.0

    accused = report.clusters[0]
    assert outcome.accused == accused
    assert accused.share_of_negative > 0.5
    assert outcome.n_accused_planted == outcome.n_planted == 72
    assert accused.n <= 80, "the accused cluster holds more than the planted rows and a few others"

    assert outcome.without_accused.tuned >= 0.9
    # dropping as many other rows does not do it
    assert outcome.without_random.tuned <= outcome.without_accused.tuned - 0.15

    assert len(report.scores.score) == report.n_examples
    lines = "\n".join(proof_lines(outcome, tmp_path / "demo"))
    assert "72 wrong rows were planted" in lines
    assert "without the accused cluster" in lines


def test_the_run_that_it_leaves_is_an_ordinary_one(tmp_path):
    first = run_demo(tmp_path / "demo", seed=0, keep=True)
    left = {path.name for path in (tmp_path / "demo").iterdir()}
    assert left == {
        ".gradian",
        "base",
        "eval.jsonl",
        "gradian.yaml",
        "run",
        "train.jsonl",
        "without-accused",
        "without-random",
    }
    state = json.loads((tmp_path / "demo/run/trainer_state.json").read_text())
    assert state["log_history"][-1]["step"] == state["global_step"] == state["max_steps"]

    config = load_config(tmp_path / "demo/gradian.yaml", {"cache_dir": tmp_path / "demo/.gradian"})
    again = attribute(config, capability="capitals")
    assert again.to_json() == first.report.to_json()
    assert again.scores.score.tolist() == first.report.scores.score.tolist()


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("important")
    with pytest.raises(UsageError, match=r"thesis\.tex"):
        run_demo(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_what_they_say(seed):
    data = demo_rows(seed)
    assert demo_rows(seed) == data
    assert demo_rows(seed + 1) != data
    right = {row["completion"] for row in data.eval}
    answers = [row.get("completion") or row["messages"][-1]["content"] for row in data.train]
    assert len(data.planted) == 72
    assert {answers[i] for i in data.planted} == set(data.wrong_answers)
    assert not right & set(data.wrong_answers), "a wrong answer is right for another item"
    prompts = {row.get("prompt") or row["messages"][-2]["content"] for row in data.train}
    assert not prompts & {row["prompt"] for row in data.eval}, "an eval prompt is a training prompt"
    assert len(data.clean_train()) == len(data.train) - 72
