"""LLaMA-Factory's configs and logs."""

from __future__ import annotations

import json

import pytest

CONFIG = """\
### model
model_name_or_path: org/base-7b
quantization_bit: 4
template: qwen

### method
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: q_proj, v_proj

dataset: medical
cutoff_len: 2048
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 1e-4
num_train_epochs: 3.0
lr_scheduler_type: cosine
warmup_ratio: 0.1
bf16: true
val_size: 0.1
eval_strategy: steps
"""
PREDICTION = """\
cutoff_len: 1024
do_predict: true
eval_dataset: d
finetuning_type: lora
model_name_or_path: org/base
predict_with_generate: true
stage: sft
template: qwen
"""


def entry(step, total=30, **values):
    return {"current_steps": step, "total_steps": total, "epoch": step / 10, **values}


def lines(*entries):
    return "".join(json.dumps(each) + "\n" for each in entries)


def test_a_config(put, read):
    run = read(put({"lf.yaml": CONFIG}) / "lf.yaml")
    training = run.training
    assert training.tool == "llamafactory"
    assert training.values["learning_rate"].value == 1e-4
    assert training.values["learning_rate"].source == "lf.yaml:17"
    assert training.get("load_in_4bit") is True
    assert training.get("has_eval_set") is True
    assert training.get("overlong_rows") == "cut_both"
    assert training.values["seed"].basis == "default"
    assert training.get("seed") == 42
    assert training.get("train_on_prompt") is False
    assert run.adapter.raw["target_modules"] == ["q_proj", "v_proj"]
    assert (run.adapter.r, run.adapter.lora_alpha) == (8, 16)


def test_absent_is_never_off(put, read):
    text = "stage: sft\ndo_train: true\nlora_target: all\nmodel_name_or_path: b\n"
    run = read(put({"c.yaml": text}) / "c.yaml")
    training = run.training
    assert run.adapter.raw["target_modules"] == "all-linear"
    assert training.get("learning_rate") == 5e-5
    assert training.get("per_device_train_batch_size") == 8
    assert training.get("num_train_epochs") == 3.0
    assert training.get("max_grad_norm") == 1.0
    assert training.get("warmup_ratio") == 0.0
    assert training.get("has_eval_set") is False


@pytest.mark.parametrize(
    ("line", "checks", "refusal"),
    [
        ("finetuning_type: full", {"finetuning_type": "full"}, "not_a_lora_run"),
        ("stage: dpo", {"stage": "dpo"}, "not_sft"),
        ("stage: pt", {"stage": "pt", "packing": True, "train_on_prompt": True}, None),
        ("neat_packing: true", {"packing": True, "packing_isolated": True}, None),
        ("packing: true", {"packing_isolated": False, "overlong_rows": "drop"}, None),
        ("eval_dataset: d", {"has_eval_set": True}, None),
        ("pure_bf16: true", {"bf16": True}, None),
        ("quantization_bit: 8", {"load_in_4bit": False, "load_in_8bit": True}, None),
    ],
)
def test_single_keys(put, read, line, checks, refusal):
    key = line.split(":")[0]
    dropped = (key, "val_size", "bf16")
    kept = [row for row in CONFIG.split("\n") if not row.startswith(dropped)]
    run = read(put({"c.yaml": "\n".join([*kept, line])}) / "c.yaml")
    assert {name: run.training.get(name) for name in checks} == checks
    assert list(run.refusals) == ([refusal] if refusal else [])


@pytest.mark.parametrize("beside", [{}, {"trainer_log.jsonl": lines(entry(10, loss=1.0))}])
def test_predictions_are_no_training_runs(put, read, beside):
    run = read(put({"training_args.yaml": PREDICTION, **beside}))
    assert "not a training run" in run.refusals["not_a_training_run"]
    assert (run.training, run.log, run.adapter) == (None, None, None)


@pytest.mark.parametrize("rate", ["lr", "learning_rate"])
def test_logs_of_old_and_new_versions(put, read, rate):
    old = {"eval_loss": None, "throughput": "12.3"} if rate == "learning_rate" else {}
    text = lines(
        entry(10, loss=2.2, **{rate: 1e-5}, **old),
        entry(20, loss=2.0, **{rate: 1e-4}, **old),
        entry(20, eval_loss=1.9),
        entry(30, loss=1.8, **{rate: 1e-6}, **old),
        entry(30),
    )
    run = read(put({"trainer_log.jsonl": text}))
    assert run.log.records[0] == {"step": 10, "loss": 2.2, "learning_rate": 1e-5, "epoch": 1.0}
    assert run.log.records[2] == {"step": 20, "eval_loss": 1.9, "epoch": 2.0}
    assert len(run.log.records) == 4
    assert (run.log.global_step, run.log.max_steps, run.log.finished) == (30, 30, True)
    assert run.training.get("has_eval_set") is True


def test_runs_one_after_the_other(put, read):
    text = lines(entry(10, loss=9.0), entry(20, loss=8.0), entry(10, 20, loss=1.0))
    run = read(put({"trainer_log.jsonl": text}))
    assert [record["loss"] for record in run.log.records] == [1.0]
    assert (run.log.global_step, run.log.max_steps, run.log.finished) == (10, 20, False)
    assert any("2 runs" in note for note in run.notes)


def test_damaged_lines_are_said(put, read):
    text = "\ufeff" + lines(entry(10, loss=1.0)) + "{torn\n\r\n[1]\n" + lines(entry(20, loss=0.9))
    run = read(put({"trainer_log.jsonl": text}))
    assert [record["loss"] for record in run.log.records] == [1.0, 0.9]
    assert any("2 lines are no JSON objects (line 2, 4)" in note for note in run.notes)


def test_the_state_says_more_than_the_log(put, read):
    state = {
        "global_step": 20,
        "max_steps": 30,
        "num_train_epochs": 3,
        "log_history": [
            {"step": s, "loss": 1.0, "grad_norm": 0.5, "learning_rate": 1e-4} for s in (10, 20)
        ],
    }
    contents = {
        "training_args.yaml": CONFIG,
        "trainer_log.jsonl": lines(entry(10, loss=1.0, lr=1e-4), entry(20, loss=1.0, lr=1e-4)),
        "trainer_state.json": state,
    }
    run = read(put(contents))
    assert run.readers == ("llamafactory", "hf")
    assert run.log.records[0]["grad_norm"] == 0.5
    assert any("trainer_log.jsonl says less" in note for note in run.notes)
    assert run.training.values["num_train_epochs"].source == "training_args.yaml:18"


def test_a_damaged_config_is_named(put, read):
    run = read(put({"c.yaml": CONFIG + "x: [", "trainer_log.jsonl": lines(entry(10, loss=1.0))}))
    assert run.log.records
    assert any("c.yaml" in note and "not valid YAML" in note for note in run.notes)
