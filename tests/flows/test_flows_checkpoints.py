"""TracIn over the checkpoints of a real run, and which folders are its checkpoints."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from gradian_core.demo.finetune import finetune
from gradian_core.errors import InputError
from gradian_core.flows.attribute import attribute
from gradian_core.flows.checkpoints import find_checkpoints, learning_rate_at
from gradian_core.flows.session import Session
from gradian_core.progress import NoProgress

TRACIN = {"name": "tracin", "cross_check": None, "consensus": False}


@pytest.fixture(scope="module")
def run(tiny, tmp_path_factory):
    """A run of two epochs with a checkpoint after each; the last is the adapter."""
    folder = tmp_path_factory.mktemp("saved") / "run"
    return finetune(
        tiny.base, tiny.rows, folder, epochs=2, lr=3e-3, r=4, batch_size=10, save_checkpoints=True
    )


@pytest.fixture
def look(make_config, tmp_path):
    def find(run, adapter=None):
        config = make_config(
            tmp_path / "cache", adapter_path=str(adapter or run / "adapter"), run_dir=str(run)
        )
        return find_checkpoints(Session(config, NoProgress()))

    return find


def rates(run):
    history = json.loads((run / "trainer_state.json").read_text())["log_history"]
    return {entry["step"]: entry["learning_rate"] for entry in history}


def test_tracin_is_the_sum_over_the_runs_checkpoints(run, make_config, tmp_path, tiny):
    def scores(adapter, engine, **more):
        config = make_config(tmp_path / "cache", adapter_path=str(adapter), engine=engine, **more)
        return attribute(config)

    # one eval set and base answers for right: the queries are the same at both
    more = {"evaluation": {"query_signal": "target", "aggregation": "mean"}}
    summed = scores(run / "adapter", TRACIN, run_dir=str(run), **more)
    first, last = run / "checkpoint-6", run / "checkpoint-12"
    dot = {"name": "graddot", "cross_check": None, "consensus": False}
    at_last = scores(last, dot, **more)
    at_first = scores(first, dot, **more)
    if at_first.query.n_rows == at_last.query.n_rows == len(tiny.eval_rows):
        rate = rates(run)
        expected = rate[6] * at_first.scores.score + rate[12] * at_last.scores.score
        np.testing.assert_allclose(
            summed.scores.score, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max()
        )
    else:
        pytest.fail("the two states lost other items, so their queries cannot be compared")
    assert len(summed.provenance.result["more_indexes"]) == 1
    assert not any("With one checkpoint" in finding.title for finding in summed.findings)


def test_the_adapter_is_the_last_checkpoint_and_counts_once(run, look):
    found, notes = look(run)
    assert [(c.path.name, c.step) for c in found] == [("checkpoint-6", 6), ("adapter", 12)]
    assert [c.learning_rate for c in found] == [rates(run)[6], rates(run)[12]]
    assert notes == ()


def test_what_came_after_the_adapter_is_no_history_of_it(run, look):
    found, _ = look(run, adapter=run / "checkpoint-6")
    assert [(c.path.name, c.step) for c in found] == [("checkpoint-6", 6)]
    assert found[0].learning_rate == rates(run)[6]


def test_odd_folders(run, look, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "checkpoint-7").mkdir()
    (copy / "checkpoint-x").mkdir()
    (copy / "checkpoint-8").write_text("a file")
    shutil.copytree(copy / "checkpoint-6", copy / "checkpoint-10")
    (copy / "checkpoint-10" / "adapter_model.safetensors").unlink()
    (copy / "checkpoint-10" / "adapter_model.safetensors").mkdir()
    found, _ = look(copy)
    names = [c.path.name for c in found]
    assert names[0] == "checkpoint-6"
    assert names[-1] == "adapter"
    assert not {"checkpoint-7", "checkpoint-8"} & set(names)


def test_a_checkpoint_of_another_adapter_is_refused(run, make_config, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    path = copy / "checkpoint-6" / "adapter_config.json"
    path.write_text(path.read_text().replace('"lora_alpha": ', '"lora_alpha": 9'))
    config = make_config(
        tmp_path / "cache", adapter_path=str(copy / "adapter"), run_dir=str(copy), engine=TRACIN
    )
    with pytest.raises(InputError, match=r"no earlier state of the adapter.*lora_alpha"):
        attribute(config)


def test_learning_rates_of_a_log():
    log = [
        {"step": 10, "learning_rate": 3e-4},
        {"step": 20, "learning_rate": 2e-4},
        {"step": 20, "eval_loss": 1.0},
        {"step": 30, "learning_rate": 0.0},
        {"step": "x", "learning_rate": 9.0},
        {"learning_rate": float("nan"), "step": 5},
    ]
    assert learning_rate_at(log, 20) == learning_rate_at(log, 30) == 2e-4
    assert learning_rate_at(log, 15) == 3e-4
    assert learning_rate_at(log, 9) is None
