"""Run folders of Weights & Biases."""

from __future__ import annotations

import pytest

from gradian_core.errors import InputError

CONFIG = """\
_wandb:
    desc: null
    value:
        cli_version: 0.16.6
        huggingface_version: 4.41.0
wandb_version: 1
_name_or_path:
    desc: null
    value: org/base
learning_rate:
    desc: null
    value: 0.0002
per_device_train_batch_size:
    desc: null
    value: 4
gradient_accumulation_steps:
    desc: null
    value: 2
max_steps:
    desc: null
    value: -1
eval_strategy:
    desc: null
    value: 'no'
hub_token:
    desc: null
    value: <HUB_TOKEN>
peft_config:
    desc: null
    value:
        default:
            peft_type: LORA
            r: 16
            lora_alpha: 32
            target_modules: [q_proj]
"""
OUTPUT = """\
 50%|#####     | 10/20 [00:10<00:10,  1.00it/s]
{'loss': 1.5, 'grad_norm': 0.5, 'learning_rate': 0.0001, 'epoch': 0.5}
 50%|#####     | 10/20 [00:10<00:10,  1.00it/s]
"""
SUMMARY = {
    "train/global_step": 20,
    "train/epoch": 1.0,
    "train/loss": 1.2,
    "eval/loss": 1.4,
    "train_loss": 1.3,
    "_timestamp": 1.0,
}


@pytest.mark.parametrize(
    ("inside", "given"),
    [
        ("wandb/run-20240418_151758-abc123/files/", ""),
        ("run-20240418_151758-abc123/files/", "run-20240418_151758-abc123"),
        ("run-20240418_151758-abc123/files/", "run-20240418_151758-abc123/files"),
        ("wandb/offline-run-20240418_151758-abc123/files/", "wandb"),
    ],
)
def test_a_run_folder(put, read, inside, given):
    contents = {
        "config.yaml": CONFIG,
        "wandb-summary.json": SUMMARY,
        "output.log": OUTPUT,
        "requirements.txt": "peft==0.11.1\ntransformers==4.41.0\nnumpy==1.26.4\n",
    }
    run = read(put({inside + name: content for name, content in contents.items()}) / given)
    training = run.training
    assert (run.reader, training.tool, training.version) == ("wandb", "transformers", "4.41.0")
    assert training.get("learning_rate") == 2e-4
    assert training.get("base_model") == "org/base"
    assert training.versions["peft"].value == "0.11.1"
    assert (run.adapter.r, run.adapter.lora_alpha, run.adapter.basis) == (16, 32, "ran")
    assert run.log.records[0]["step"] == 10
    assert run.log.records[0]["loss"] == 1.5
    assert (run.log.global_step, run.log.max_steps, run.log.epoch) == (20, 20, 1.0)
    assert "HUB_TOKEN" not in repr(run)


def test_a_summary_alone(put, read):
    run = read(put({"wandb-summary.json": SUMMARY}))
    assert dict(run.log.records[0]) == {
        "step": 20,
        "epoch": 1.0,
        "loss": 1.2,
        "eval_loss": 1.4,
        "train_loss": 1.3,
    }
    assert any("last value" in note for note in run.notes)


def test_the_last_of_several_runs(put, read):
    runs = {"20240418_151758-abc": 1e-4, "20231018_151758-zzz": 2e-4}
    contents = {
        f"wandb/run-{name}/files/config.yaml": CONFIG.replace("0.0002", str(rate))
        for name, rate in runs.items()
    }
    run = read(put(contents))
    assert run.training.get("learning_rate") == 1e-4
    assert any("2 wandb runs" in note for note in run.notes)


def test_it_completes_the_run_beside_it(put, read):
    state = {
        "global_step": 20,
        "max_steps": 20,
        "num_train_epochs": 1,
        "log_history": [{"step": s, "loss": 1.0, "grad_norm": 1.0} for s in (10, 20)],
    }
    inside = "wandb/run-20240418_151758-abc123/files/"
    run = read(put({"trainer_state.json": state, inside + "config.yaml": CONFIG}))
    assert run.readers == ("wandb", "hf")
    assert len(run.log.records) == 2
    assert run.training.get("learning_rate") == 2e-4


def test_a_history_that_is_not_read(put, read):
    inside = "wandb/run-20240418_151758-abc123/"
    run = read(put({inside + "files/config.yaml": CONFIG, inside + "run-abc123.wandb": b"x"}))
    assert any("binary file" in note for note in run.notes)


@pytest.mark.parametrize("place", ["", "run-1/", "wandb/offline-run-1/"])
@pytest.mark.parametrize("whole", [True, False], ids=["folder", "file"])
def test_a_binary_history_alone_is_named_and_not_read(put, read, place, whole):
    folder = put({f"{place}run-abc.wandb": b":W&B\x00\x01"})
    path = folder if whole else folder / f"{place}run-abc.wandb"
    with pytest.raises(InputError, match=r"run-abc\.wandb is wandb's binary history"):
        read(path)
