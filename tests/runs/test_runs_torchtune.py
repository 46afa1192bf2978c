"""torchtune's configs of components and its text log."""

from __future__ import annotations

import pytest

CONFIG = """\
output_dir: /tmp/out
model:
  _component_: torchtune.models.llama3_2.lora_llama3_2_1b
  lora_attn_modules: ['q_proj', 'v_proj', 'output_proj']
  apply_lora_to_mlp: True
  lora_rank: 64
  lora_alpha: 128
  lora_dropout: 0.0
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: null
checkpointer:
  _component_: torchtune.training.FullModelHFCheckpointer
  checkpoint_dir: /tmp/Llama-3.2-1B-Instruct/
dataset:
  _component_: torchtune.datasets.alpaca_cleaned_dataset
  packed: False
seed: null
batch_size: 4
optimizer:
  _component_: torch.optim.AdamW
  weight_decay: 0.01
  lr: 3e-4
lr_scheduler:
  _component_: torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup
  num_warmup_steps: 100
loss:
  _component_: torchtune.modules.loss.LinearCrossEntropyLoss
epochs: 1
max_steps_per_epoch: null
gradient_accumulation_steps: 8
clip_grad_norm: null
dtype: bf16
"""
LOG = """\
Step 1 | loss:2.5 lr:3e-06 tokens_per_second_per_gpu:900.1 grad_norm:1.5
Step 2 | loss:nan lr:6e-06 tokens_per_second_per_gpu:900.1
Step 2 | val_loss:2.1
"""


def test_a_config(put, read):
    run = read(put({"torchtune_config.yaml": CONFIG}))
    training = run.training
    assert training.tool == "torchtune"
    assert training.get("max_grad_norm") == 0.0
    assert training.values["max_grad_norm"].source == "torchtune_config.yaml:32 (null)"
    for name in ("seed", "max_seq_length"):
        assert training.values[name].value is None
        assert "null" in training.values[name].source
    assert training.get("learning_rate") == 3e-4
    assert training.get("optim") == "adamw_torch"
    assert training.get("lr_scheduler_type") == "cosine"
    assert training.get("warmup_steps") == 100
    assert (training.get("bf16"), training.get("fp16")) == (True, False)
    assert training.get("has_eval_set") is False
    assert training.get("train_on_prompt") is True
    assert training.get("base_model") == "Llama-3.2-1B-Instruct"
    assert run.adapter.raw["target_modules"] == [
        *("q_proj", "v_proj", "o_proj"),
        *("gate_proj", "up_proj", "down_proj"),
    ]
    assert (run.adapter.r, run.adapter.lora_alpha) == (64, 128)


@pytest.mark.parametrize("key", ["clip_grad_norm", "seed"])
def test_an_absent_key_is_off_too(put, read, key):
    text = "".join(row + "\n" for row in CONFIG.splitlines() if not row.startswith(key))
    training = read(put({"c.yaml": text}) / "c.yaml").training
    name = {"clip_grad_norm": "max_grad_norm"}.get(key, key)
    assert training.values[name].basis == "default"
    assert not training.values[name].value


@pytest.mark.parametrize(
    ("old", "new", "checks", "refusal"),
    [
        ("clip_grad_norm: null", "clip_grad_norm: 1.0", {"max_grad_norm": 1.0}, None),
        ("seed: null", "seed: 7", {"seed": 7}, None),
        ("max_seq_len: null", "max_seq_len: 512", {"max_seq_length": 512}, None),
        ("packed: False", "packed: True", {"packing": True, "packing_isolated": True}, None),
        ("max_steps_per_epoch: null", "max_steps_per_epoch: 50", {"max_steps": 50}, None),
        ("epochs: 1", "epochs: 1\ndataset_val: {split: v}", {"has_eval_set": True}, None),
        (
            "torchtune.modules.loss.LinearCrossEntropyLoss",
            "torchtune.rlhf.loss.DPOLoss",
            {"stage": "dpo"},
            "not_sft",
        ),
    ],
)
def test_single_keys(put, read, old, new, checks, refusal):
    run = read(put({"c.yaml": CONFIG.replace(old, new)}) / "c.yaml")
    assert {name: run.training.get(name) for name in checks} == checks
    assert list(run.refusals) == ([refusal] if refusal else [])


def test_a_full_fine_tune(put, read):
    kept = [row for row in CONFIG.splitlines() if "lora_" not in row or "_component_" in row]
    text = "\n".join(kept).replace("lora_llama3_2_1b", "llama3_2_1b")
    run = read(put({"c.yaml": text}) / "c.yaml")
    assert run.adapter is None
    assert run.training.get("finetuning_type") == "full"
    assert "no LoRA layers" in run.refusals["not_a_lora_run"]


@pytest.mark.parametrize("place", ["", "logs/log_1700000000.txt"])
def test_a_log(put, read, place):
    folder = put({"logs/log_1700000000.txt": LOG, "logs/log_999999999.txt": "Step 1 | loss:9 \n"})
    log = read(folder / place).log
    assert log.records[0] == {"step": 1, "loss": 2.5, "learning_rate": 3e-6, "grad_norm": 1.5}
    assert log.records[1]["loss"] != log.records[1]["loss"]
    assert log.records[2] == {"step": 2, "eval_loss": 2.1}
    assert log.global_step == 2
