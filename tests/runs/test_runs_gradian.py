"""gradian_run.json, the record from inside a run."""

from __future__ import annotations

import json
import math

import pytest

from gradian_core.errors import InputError
from gradian_core.runs.gradian_run import (
    CollatedRow,
    DataRecord,
    GradianRun,
    LogRecord,
    read_gradian_run,
    write_gradian_run,
)

RUN = GradianRun(
    tool="trl",
    versions={"trl": "0.24.0", "transformers": "4.57.1"},
    arguments_class="trl.trainer.sft_config.SFTConfig",
    arguments={
        "learning_rate": 2e-4,
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 4,
        "max_length": 1024,
        "eval_strategy": "no",
    },
    settings={"collator": "DataCollatorForLanguageModeling", "nonsense": 1},
    base_model="org/base",
    adapter={"peft_type": "LORA", "r": 16, "lora_alpha": 32},
    chat_template="{{ messages }}",
    train_data=DataRecord(rows=100, columns=("messages",)),
    eval_data=DataRecord(rows=10),
    world_size=2,
    first_rows=(CollatedRow(input_ids=(1, 2), labels=(-100, 2)),),
    log=LogRecord(
        records=({"step": 1, "loss": math.nan},), global_step=1, max_steps=10, finished=False
    ),
)


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "gradian_run.json"
    write_gradian_run(path, RUN)
    again = read_gradian_run(path)
    assert math.isnan(again.log.records[0].pop("loss"))
    expected = RUN.model_copy(update={"log": again.log})
    assert again == expected


@pytest.mark.parametrize("name", ["gradian_run.json", "gradian/run.json"])
def test_the_reader(tmp_path, read, name):
    (tmp_path / "gradian").mkdir()
    write_gradian_run(tmp_path / name, RUN)
    run = read(tmp_path)
    training = run.training
    assert (run.reader, training.tool, training.version) == ("gradian", "trl", "0.24.0")
    assert training.get("learning_rate") == 2e-4
    assert training.get("max_seq_length") == 1024
    assert training.get("collator") == "DataCollatorForLanguageModeling"
    assert training.get("has_eval_set") is True
    assert training.get("total_train_batch_size") == 16
    assert training.get("stage") == "sft"
    assert "nonsense" not in training.values
    assert (run.adapter.r, run.adapter.base_model) == (16, "org/base")
    assert (run.log.global_step, run.log.max_steps, run.log.finished) == (1, 10, False)


def test_it_wins_over_the_trainers_files(tmp_path, put, read):
    folder = put({"README.md": "---\ntags: [generated_from_trainer]\n---\n- TRL: 0.19.0\n"})
    write_gradian_run(folder / "gradian_run.json", RUN)
    run = read(folder)
    assert run.readers[0] == "gradian"
    assert run.training.version == "0.24.0"


@pytest.mark.parametrize("place", [".", "adapter"])
def test_the_weights_are_found_where_they_lie(tmp_path, read, place):
    write_gradian_run(tmp_path / "gradian_run.json", RUN)
    (tmp_path / place).mkdir(exist_ok=True)
    (tmp_path / place / "adapter_model.safetensors").write_bytes(b"")
    assert read(tmp_path).adapter.path == tmp_path / place


def test_a_full_fine_tune(tmp_path, read):
    write_gradian_run(tmp_path / "gradian_run.json", RUN.model_copy(update={"adapter": None}))
    assert "not_a_lora_run" in read(tmp_path).refusals


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"format_version": "2.0"}, "format version 2.0"),
        ({"world_size": 0}, "world_size"),
        ({"tool": None}, "tool"),
        ({"log": {"records": [1]}}, r"log\.records\.0"),
        ({"format": "other"}, "no gradian-run record"),
    ],
)
def test_damaged_records(tmp_path, change, word):
    path = tmp_path / "gradian_run.json"
    path.write_text(json.dumps(RUN.model_dump() | change))
    with pytest.raises(InputError, match=word):
        read_gradian_run(path)


def test_newer_minor_versions_are_read(tmp_path):
    path = tmp_path / "gradian_run.json"
    path.write_text(json.dumps(RUN.model_dump() | {"format_version": "1.9", "new": 1}))
    assert read_gradian_run(path).tool == "trl"
