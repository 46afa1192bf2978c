"""Configs of trl's command line."""

from __future__ import annotations

import pytest

CONFIG = """\
model_name_or_path: org/base
dataset_name: org/data
use_peft: true
lora_r: 16
lora_alpha: 32
lora_target_modules: all-linear
learning_rate: 2.0e-4
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
num_train_epochs: 1
max_length: 2048
packing: true
eval_strategy: no
"""


def test_a_config(put, read):
    run = read(put({"sft.yaml": CONFIG}) / "sft.yaml")
    training = run.training
    assert (run.readers, training.tool) == (("trl",), "trl")
    assert training.get("max_seq_length") == 2048
    assert training.values["max_seq_length"].source == "sft.yaml:11"
    assert training.get("packing") is True
    assert training.get("eval_strategy") == "no"
    assert training.get("has_eval_set") is False
    assert training.get("max_grad_norm") == 1.0
    assert training.get("warmup_ratio") == 0.0
    assert run.adapter.raw["target_modules"] == "all-linear"
    assert run.adapter.raw["lora_dropout"] == 0.05


@pytest.mark.parametrize(
    ("old", "new", "checks", "refusal"),
    [
        ("use_peft: true", "x: 1", {"finetuning_type": "full"}, "not_a_lora_run"),
        ("eval_strategy: no", "eval_strategy: steps", {"has_eval_set": True}, None),
        ("packing: true", "beta: 0.1", {"stage": "dpo"}, "not_sft"),
        ("max_length: 2048", "x: 1", {"max_seq_length": 1024}, None),
        ("learning_rate: 2.0e-4", "x: 1", {"learning_rate": 2e-5}, None),
    ],
)
def test_single_keys(put, read, old, new, checks, refusal):
    run = read(put({"c.yaml": CONFIG.replace(old, new)}) / "c.yaml")
    assert {name: run.training.get(name) for name in checks} == checks
    assert list(run.refusals) == ([refusal] if refusal else [])
