"""The reader of transformers' runs."""

from __future__ import annotations

import json
import math

import pytest

from gradian_core.errors import InputError
from gradian_plugins.runs.hf import HFRunReader

STATE = {
    "global_step": 3,
    "max_steps": 4,
    "num_train_epochs": 2,
    "log_history": [
        {"step": 1, "loss": 2.0, "learning_rate": 1e-3},
        {"step": 3, "loss": float("nan"), "learning_rate": 5e-4},
    ],
}


def write(folder, state=STATE):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trainer_state.json").write_text(json.dumps(state))
    return folder


@pytest.mark.parametrize("place", [".", "trainer_state.json"])
def test_reads_log_and_settings(tmp_path, place):
    write(tmp_path)
    run = HFRunReader().read(tmp_path / place)
    assert run.log.global_step == 3
    assert run.training.get("num_train_epochs") == 2
    assert run.training.get("warmup_ratio") is None
    assert math.isnan(run.log.records[1]["loss"])


def test_takes_the_numerically_last_checkpoint(tmp_path):
    for step in (200, 1000, 30):
        write(tmp_path / f"checkpoint-{step}", STATE | {"global_step": step})
    write(tmp_path / "checkpoint-best", STATE | {"global_step": 9999})
    assert HFRunReader().can_read(tmp_path)
    assert HFRunReader().read(tmp_path).log.global_step == 1000


def test_finds_the_adapter_beside_the_log(tmp_path):
    write(tmp_path)
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter/adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA", "r": 8, "lora_alpha": 16})
    )
    adapter = HFRunReader().read(tmp_path).adapter
    assert (adapter.r, adapter.lora_alpha, adapter.path.name) == (8, 16, "adapter")


def test_nothing_to_read(tmp_path):
    assert not HFRunReader().can_read(tmp_path)
    with pytest.raises(InputError, match="holds no"):
        HFRunReader().read(tmp_path)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "is not JSON"),
        ("[]", "not a JSON object"),
        ('{"log_history": 3}', "log_history"),
        ("version https://git-lfs.github.com/spec/v1\n", "Git-LFS"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_damaged_states(tmp_path, text, word):
    (tmp_path / "trainer_state.json").write_text(text)
    with pytest.raises(InputError, match=word):
        HFRunReader().read(tmp_path)
