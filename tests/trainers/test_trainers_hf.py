"""``gradian train`` with transformers.Trainer on the embedded model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import gradian_core
from gradian_core.cli.app import main
from gradian_core.config.load import load_config
from gradian_core.data.encode import encode
from gradian_core.data.files import load_dataset
from gradian_core.errors import InputError, UsageError
from gradian_core.model.load import load_tokenizer
from gradian_core.model.source import resolve_base
from gradian_core.plugins.registry import load_registry
from gradian_core.runs.resolve import read_run

pytest.importorskip("accelerate")

MODEL = Path(gradian_core.__file__).parent / "demo" / "model"
ROWS = [
    {"prompt": f"What is the capital of {country}?", "completion": city, "cluster": "capitals"}
    for country, city in [
        ("France", "Paris"), ("Japan", "Tokyo"), ("Peru", "Lima"), ("Kenya", "Nairobi"),
        ("Norway", "Oslo"), ("Egypt", "Cairo"), ("Cuba", "Havana"), ("Spain", "Madrid"),
    ]
]  # fmt: skip


def written(folder):
    path = folder / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


@pytest.fixture
def dataset(tmp_path):
    return written(tmp_path)


def configured(dataset, out, **settings):
    train = {
        "train.output_dir": str(out),
        "train.per_device_train_batch_size": 4,
        "train.num_train_epochs": 2,
        "train.learning_rate": 1e-3,
        **{f"train.{key}": value for key, value in settings.items()},
    }
    given = {"base_model": str(MODEL), "dataset": str(dataset), "seed": 7}
    return load_config(None, {**given, **train})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    return gradian_core.train(configured(written(folder), folder / "run"))


def adapter(run):
    return load_file(run / "adapter" / "adapter_model.safetensors")


def test_it_leaves_an_ordinary_run_folder_behind(run):
    state = json.loads((run / "trainer_state.json").read_text(encoding="utf-8"))
    losses = [entry["loss"] for entry in state["log_history"] if "loss" in entry]
    assert len(losses) == state["global_step"] == 4
    config = json.loads((run / "adapter" / "adapter_config.json").read_text(encoding="utf-8"))
    assert config["base_model_name_or_path"] == str(MODEL)
    assert any(tensor.any() for name, tensor in adapter(run).items() if "lora_B" in name)


def test_the_run_is_read_back_with_what_it_was_told(run):
    artifact = read_run(run, load_registry())
    assert artifact.training.get("learning_rate") == 1e-3
    assert artifact.training.get("seed") == 7
    assert artifact.training.get("max_seq_length") == 512
    assert artifact.training.get("warmup_steps") == 1
    assert artifact.adapter.raw["r"] == 8
    assert artifact.log.finished is True
    assert not artifact.refusals


def test_the_loss_mask_of_training_is_that_of_attribution(run, dataset):
    record = json.loads((run / "gradian_run.json").read_text(encoding="utf-8"))
    tokenizer = load_tokenizer(configured(dataset, run), resolve_base(str(MODEL)))
    tokens = encode(load_dataset(dataset), tokenizer, max_seq_length=512, supervise="all").tokens
    assert record["first_rows"]
    for place, row in enumerate(record["first_rows"]):
        ids, mask = tokens.row(place)
        assert row["input_ids"] == ids.tolist()
        assert row["labels"] == np.where(mask, ids, -100).tolist()


def test_no_secret_and_no_folder_of_the_machine_is_recorded(run):
    record = json.loads((run / "gradian_run.json").read_text(encoding="utf-8"))
    assert not [name for name in record["arguments"] if "token" in name or "dir" in name]
    text = (run / "gradian_run.json").read_text(encoding="utf-8")
    assert str(run) not in text


def test_the_same_seed_gives_the_same_adapter_and_another_one_does_not(dataset, tmp_path, run):
    again = gradian_core.train(configured(dataset, tmp_path / "again"))
    config = configured(dataset, tmp_path / "other").model_copy(update={"seed": 8})
    other = gradian_core.train(config)
    first, second, third = adapter(run), adapter(again), adapter(other)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], third[name]) for name in first)


def test_training_leaves_the_callers_random_state_alone(dataset, tmp_path):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    gradian_core.train(configured(dataset, tmp_path / "run"))
    assert torch.equal(torch.rand(2), expected)


def test_checkpoints_hold_the_adapter_only(dataset, tmp_path):
    run = gradian_core.train(configured(dataset, tmp_path / "run", save_checkpoints=True))
    checkpoints = sorted(path.name for path in run.glob("checkpoint-*"))
    assert checkpoints == ["checkpoint-2", "checkpoint-4"]
    last = load_file(run / "checkpoint-4" / "adapter_model.safetensors")
    assert all(torch.equal(last[name], tensor) for name, tensor in adapter(run).items())
    assert not (run / "checkpoint-4" / "optimizer.pt").exists()


def test_further_arguments_reach_the_trainer(dataset, tmp_path):
    run = gradian_core.train(configured(dataset, tmp_path / "run", extra={"max_steps": 1}))
    state = json.loads((run / "trainer_state.json").read_text(encoding="utf-8"))
    assert state["global_step"] == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"extra": {"max_step": 1}}, "max_step"),
        ({"extra": {"seed": 1}}, "seed"),
        ({"lr_scheduler_type": "zigzag"}, "zigzag"),
    ],
)
def test_settings_that_no_trainer_takes_are_refused(dataset, tmp_path, settings, message):
    with pytest.raises(UsageError, match=message):
        gradian_core.train(configured(dataset, tmp_path / "run", **settings))


def test_modules_that_the_model_lacks_are_refused(dataset, tmp_path):
    with pytest.raises(InputError, match="target_modules"):
        gradian_core.train(configured(dataset, tmp_path / "run", target_modules=["c_attn"]))


def test_rows_without_a_target_are_refused(dataset, tmp_path):
    dataset.write_text('{"messages": [{"role": "user", "content": "Hi"}]}\n', encoding="utf-8")
    with pytest.raises(InputError, match="supervised"):
        gradian_core.train(configured(dataset, tmp_path / "run"))


def test_an_adapter_is_never_overwritten(run, dataset):
    with pytest.raises(UsageError, match="holds an adapter already"):
        gradian_core.train(configured(dataset, run))


def test_the_command(dataset, tmp_path, capsys):
    out = tmp_path / "run"
    config = tmp_path / "gradian.yaml"
    config.write_text("train:\n  extra: {max_steps: 1}\n", encoding="utf-8")
    arguments = ["-c", str(config), "-d", str(dataset), "-m", str(MODEL), "-o", str(out), "-q"]
    assert main(["train", *arguments]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    assert (out / "adapter" / "adapter_model.safetensors").exists()
    assert main(["train", *arguments]) == 2
    assert "adapter already" in capsys.readouterr().err


def test_the_command_says_what_is_missing(capsys):
    assert main(["train", "-q"]) == 2
    assert "base model and training data" in capsys.readouterr().err
