"""mlx-lm's configs, its own adapter_config.json and what it prints."""

from __future__ import annotations

import pytest

SAVED = {
    "adapter_path": "adapters",
    "batch_size": 1,
    "fine_tune_type": "lora",
    "grad_accumulation_steps": 1,
    "iters": 300,
    "learning_rate": 2e-5,
    "lora_parameters": {"rank": 8, "dropout": 0.0, "scale": 20.0},
    "lr_schedule": None,
    "mask_prompt": False,
    "max_seq_length": 2048,
    "model": "org/base-0.5B",
    "num_layers": 4,
    "optimizer": "adam",
    "optimizer_config": {"adam": {}},
    "seed": 0,
    "steps_per_eval": 50,
    "steps_per_report": 10,
    "test": False,
    "train": True,
    "val_batches": 1,
}
CONFIG = """\
model: org/base-1B
train: true
fine_tune_type: lora
optimizer: adamw
num_layers: 16
iters: 1000
learning_rate: 1e-5
lora_parameters:
  keys: ["self_attn.q_proj", "self_attn.v_proj"]
  rank: 8
  scale: 20.0
  dropout: 0.0
"""
OLD = """\
Trainable parameters 2.229M
Iter 1: Val loss 3.298, Val took 268.159s
Iter 10: Train loss 3.260, It/sec 0.108, Tokens/sec 61.375
Iter 100: Saved adapter weights to adapters.npz.
"""
NEW = """\
Iter 1: Val loss 2.9, Val took 1.0s
Iter 10: Train loss nan, Learning Rate 1.000e-05, It/sec 34.683, Trained Tokens 820, Peak mem 1 GB
"""
TABLE = """\
  iter   train_loss     tok/s     tokens
     1    val 2.900    1.20s
    10    2.345 \u25bc    1,234     12.3k
  train \u2588\u2588 10% \u00b7    20/1,000
    20    nan \u25b2    1,234     24.6k
"""


@pytest.mark.parametrize("place", ["", "adapters", "adapters/adapter_config.json"])
def test_the_saved_config_is_not_pefts(put, read, place):
    run = read(put({"adapters/adapter_config.json": SAVED}) / place)
    training = run.training
    assert (run.reader, training.tool) == ("mlx", "mlx-lm")
    assert training.values["learning_rate"].value == 2e-5
    assert training.values["learning_rate"].basis == "ran"
    assert training.get("max_steps") == 300
    assert training.get("seed") == 0
    assert training.get("train_on_prompt") is True
    assert training.get("lr_scheduler_type") == "constant"
    assert training.get("warmup_steps") == 0
    assert training.get("max_grad_norm") == 0.0
    assert training.values["max_grad_norm"].basis == "default"
    assert training.get("num_layers") == 4
    adapter = run.adapter
    assert (adapter.peft_type, adapter.r, adapter.lora_alpha) == ("LORA", 8, 160.0)
    assert adapter.raw["target_modules"] == "all-linear"
    assert adapter.basis == "ran"


def test_a_config(put, read):
    run = read(put({"lora.yaml": CONFIG + "learning_rat: 1\n"}) / "lora.yaml")
    training = run.training
    assert training.values["learning_rate"].value == 1e-5
    assert training.values["learning_rate"].source == "lora.yaml:7"
    assert training.get("per_device_train_batch_size") == 4
    assert training.get("optim") == "adamw"
    assert run.adapter.raw["target_modules"] == ["self_attn.q_proj", "self_attn.v_proj"]
    assert run.adapter.basis == "asked"
    assert [key.name for key in training.unknown_keys] == ["learning_rat"]


@pytest.mark.parametrize(
    ("change", "checks"),
    [
        ({"mask_prompt": True}, {"train_on_prompt": False}),
        ({"grad_accumulation_steps": 3}, {"max_steps": 100}),
        ({"fine_tune_type": "full"}, {"finetuning_type": "full"}),
        (
            {"lr_schedule": {"name": "linear_schedule", "arguments": [0.0, 3e-5, 300]}},
            {"lr_scheduler_type": "linear", "learning_rate": 3e-5},
        ),
        ({"val_batches": 0}, {"has_eval_set": False}),
        (
            {"lr_schedule": {"name": "cosine_decay", "warmup": 100, "arguments": [3e-5, 300]}},
            {"lr_scheduler_type": "cosine", "warmup_steps": 100, "learning_rate": 3e-5},
        ),
        (
            {"optimizer": "adamw", "optimizer_config": {"adamw": {"weight_decay": 0.05}}},
            {"optim": "adamw", "weight_decay": 0.05},
        ),
    ],
)
def test_single_keys(put, read, change, checks):
    run = read(put({"adapter_config.json": SAVED | change}))
    assert {name: run.training.get(name) for name in checks} == checks
    assert ("not_a_lora_run" in run.refusals) is (change.get("fine_tune_type") == "full")


def test_a_test_is_no_training_run(put, read):
    run = read(put({"adapter_config.json": SAVED | {"train": False, "test": True}}))
    assert "not_a_training_run" in run.refusals
    assert run.training is None


@pytest.mark.parametrize("text", [OLD, NEW, TABLE])
def test_what_is_printed(put, read, text):
    log = read(put({"stdout.txt": text}) / "stdout.txt").log
    assert log.records[0]["step"] == 1
    assert log.records[0]["eval_loss"] in (3.298, 2.9)
    assert log.records[1]["step"] == 10
    last = log.records[-1]
    if text != OLD:
        assert last["loss"] != last["loss"]
    if text == NEW:
        assert last["learning_rate"] == 1e-5


def test_runs_one_after_the_other(put, read):
    run = read(put({"out.log": OLD + NEW}) / "out.log")
    assert [record["step"] for record in run.log.records] == [1, 10]
    assert any("2 runs" in note for note in run.notes)


def test_iterations_become_steps(put, read):
    contents = {
        "adapter_config.json": SAVED | {"grad_accumulation_steps": 2},
        "train.log": OLD.replace("Iter 1:", "Iter 2:"),
    }
    run = read(put(contents))
    assert [record["step"] for record in run.log.records] == [1, 5]
    assert (run.log.global_step, run.log.max_steps) == (5, 150)
