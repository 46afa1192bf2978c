"""One run from all readers that know a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradian_core.errors import InputError
from gradian_core.plugins.registry import Registry
from gradian_core.runs.artifact import (
    AdapterInfo,
    RunArtifact,
    TrainerLog,
    TrainingConfig,
    UnknownKey,
    Value,
)
from gradian_core.runs.resolve import merge_runs, read_run

HERE = Path("run")


def artifact(reader, specificity, **parts):
    return RunArtifact(path=HERE, reader=reader, specificity=specificity, **parts)


def training(tool, **values):
    made = {name: Value(*value) for name, value in values.items()}
    return TrainingConfig(tool=tool, values=made)


def test_the_most_specific_reader_names_the_tool_and_the_best_evidence_counts():
    hf = artifact(
        "hf",
        10,
        training=training(
            "transformers",
            num_train_epochs=(1.0, "training_args.bin", "ran"),
            warmup_steps=(23, "training_args.bin", "ran"),
            seed=(42, "default of transformers", "default"),
            per_device_train_batch_size=(2, "trainer_state.json", "inferred"),
        ),
        notes=("a",),
    )
    tool = artifact(
        "tool",
        50,
        training=TrainingConfig(
            tool="tool",
            version="1.0",
            values={
                "num_train_epochs": Value(3, "c.yml:1", "asked"),
                "warmup_ratio": Value(0.03, "default of tool", "default"),
                "seed": Value(7, "default of tool", "default"),
                "per_device_train_batch_size": Value(1, "c.yml:2", "asked"),
            },
            unknown_keys=(UnknownKey(name="x", value=1, source="c.yml:9"),),
        ),
        notes=("b", "a"),
    )
    for order in ([hf, tool], [tool, hf]):
        run = merge_runs(HERE, order)
        assert (run.reader, run.readers) == ("tool", ("tool", "hf"))
        assert (run.training.tool, run.training.version) == ("tool", "1.0")
        values = run.training.values
        assert values["num_train_epochs"].source == "training_args.bin"
        assert run.training.requested["num_train_epochs"].source == "c.yml:1"
        assert values["warmup_steps"].value == 23
        assert values["warmup_ratio"].value == 0.03
        assert values["seed"].source == "default of tool"
        assert values["per_device_train_batch_size"].source == "c.yml:2"
        assert [key.name for key in run.training.unknown_keys] == ["x"]
        assert run.notes == ("b", "a")


def test_missing_parts_come_from_the_others():
    made = AdapterInfo(path=HERE, peft_type="LORA", r=8)
    asked = AdapterInfo(path=HERE, peft_type="LORA", r=16, basis="asked")
    short = TrainerLog(records=({"step": 1, "loss": 1.0},), max_steps=9, source="short")
    long = TrainerLog(records=({"step": 1, "loss": 1.0, "grad_norm": 1.0},), source="long")
    refusals = {"not_a_lora_run": "no adapter key"}
    tool = artifact("tool", 50, adapter=asked, log=short, refusals=refusals)
    hf = artifact("hf", 10, adapter=made, log=long)
    run = merge_runs(HERE, [tool, hf])
    assert run.adapter is made
    assert (run.log.source, run.log.max_steps) == ("long", 9)
    assert run.notes == ("The log is that of long; short says less.",)
    assert run.refusals == {}
    assert merge_runs(HERE, [tool]).refusals == refusals
    assert merge_runs(HERE, [artifact("hf", 10)]).training is None


class Reader:
    def __init__(self, knows=True, error=None):
        self.knows, self.error = knows, error

    def can_read(self, path):
        return self.knows

    def read(self, path):
        if self.error:
            raise self.error
        return artifact("fake", 50, training=training("fake"))


class Provided:
    owner = "someone's plugin"


class FakeRegistry(Registry):
    """A registry whose readers are given."""

    def __init__(self, **readers):
        object.__setattr__(self, "given", readers)

    @property
    def run_readers(self):
        return dict.fromkeys(self.given, Provided())

    def create(self, kind, name, options=None):
        return self.given[name]


def test_a_failing_reader_does_not_keep_the_others(tmp_path):
    registry = FakeRegistry(
        bad=Reader(error=ZeroDivisionError("oops")),
        broken=Reader(error=InputError("x.json is not JSON.")),
        good=Reader(),
        other=Reader(knows=False),
    )
    run = read_run(tmp_path, registry)
    assert run.readers == ("fake",)
    assert any("bad" in note and "ZeroDivisionError" in note for note in run.notes)
    assert "x.json is not JSON." in run.notes


def test_nothing_to_read(tmp_path):
    with pytest.raises(InputError, match="no file or folder"):
        read_run(tmp_path / "absent", FakeRegistry(good=Reader()))
    with pytest.raises(InputError, match="no run reader knows"):
        read_run(tmp_path, FakeRegistry(good=Reader(knows=False)))
    damaged = FakeRegistry(bad=Reader(error=InputError("x.json is not JSON.")))
    with pytest.raises(InputError, match=r"could not be read. x\.json is not JSON"):
        read_run(tmp_path, damaged)


CONFIG = """\
base_model: org/base
datasets: [{path: d.jsonl, type: alpaca}]
adapter: lora
lora_r: 8
lora_alpha: 16
micro_batch_size: 2
num_epochs: 3
learning_rate: 1e-4
"""


def test_an_axolotl_folder_with_transformers_files(put, read):
    state = {
        "epoch": 1.0,
        "global_step": 10,
        "max_steps": 10,
        "num_train_epochs": 1,
        "train_batch_size": 4,
        "log_history": [
            {"step": 5, "loss": 1.0, "learning_rate": 1e-4},
            {"step": 10, "eval_loss": 1.0},
        ],
    }
    adapter = {"peft_type": "LORA", "r": 16, "lora_alpha": 32}
    contents = {"c.yml": CONFIG, "trainer_state.json": state, "adapter_config.json": adapter}
    run = read(put(contents))
    assert run.readers == ("axolotl", "hf")
    assert run.training.tool == "axolotl"
    assert run.training.values["num_train_epochs"].source == "c.yml:7"
    assert run.training.get("per_device_train_batch_size") == 2
    assert run.training.get("has_eval_set") is True
    assert run.adapter.r == 16
    assert len(run.log.records) == 2


def test_reading_twice_gives_the_same(put, read):
    folder = put({"c.yml": CONFIG, "d.yml": CONFIG.replace("1e-4", "1e-5")})
    assert read(folder) == read(folder)
    assert any("Of several configs d.yml was read" in note for note in read(folder).notes)
