"""Runs of transformers' Trainer, trl and unsloth."""

from __future__ import annotations

import json
import math
import pickle

import pytest

from gradian_core.errors import InputError
from gradian_plugins.runs.hf import HFRunReader

STATE = {
    "epoch": 1.5,
    "global_step": 3,
    "max_steps": 4,
    "num_train_epochs": 2,
    "train_batch_size": 2,
    "logging_steps": 1,
    "log_history": [
        {"step": 1, "loss": 2.0, "learning_rate": 1e-3},
        {"step": 3, "loss": float("nan"), "learning_rate": 5e-4, "grad_norm": float("inf")},
    ],
}
ADAPTER = {
    "peft_type": "LORA",
    "base_model_name_or_path": "org/base",
    "r": 8,
    "lora_alpha": 16,
    "target_modules": ["v_proj", "q_proj"],
}
TRL_CARD = """\
---
base_model: unsloth/Ministral-3-3B-Instruct-2512
library_name: transformers
tags:
- generated_from_trainer
- sft
- unsloth
- trl
licence: license
---

# Model Card for outputs

### Framework versions

- TRL: 0.24.0
- Transformers: 5.0.0rc1
- Pytorch: 2.9.1
"""
HF_CARD = """\
---
library_name: peft
base_model: org/base
tags: [generated_from_trainer]
---
### Training hyperparameters

The following hyperparameters were used during training:
- learning_rate: 0.0001
- train_batch_size: 8
- eval_batch_size: 8
- seed: 42
- distributed_type: multi-GPU
- num_devices: 3
- gradient_accumulation_steps: 2
- total_train_batch_size: 48
- optimizer: Adam with betas=(0.9,0.95) and epsilon=1e-08
- lr_scheduler_type: cosine
- training_steps: 500
- mixed_precision_training: Native AMP

### Training results

| Training Loss | Epoch | Step | Validation Loss | Accuracy |
|:-------------:|:-----:|:----:|:---------------:|:--------:|
| No log        | 0     | 0    | 4.0502          | .1       |
| 1.5486        | 0.5   | 250  | 1.4786          | .2       |
| nan           | 1.0   | 500  | nan             | .2       |

### Framework versions

- PEFT 0.15.2
- Transformers 4.51.3
"""


class SFTConfig:
    def __init__(self, **fields):
        self.__dict__.update(fields)


SFTConfig.__module__ = "trl.trainer.sft_config"


def arguments(**fields):
    """Saved arguments of trl's SFTConfig, as a pickle that names it without importing it."""
    base = {
        "learning_rate": 2e-4,
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 4,
        "num_train_epochs": 3,
        "max_steps": -1,
        "warmup_steps": 0.1,
        "lr_scheduler_type": "cosine",
        "max_grad_norm": None,
        "seed": 3407,
        "eval_strategy": "no",
        "max_length": 2048,
        "packing": True,
        "hub_token": "hf_secret",
    }
    content = pickle.dumps(dict(base, **fields), 2)
    # an object of that class, made from the dict: GLOBAL, EMPTY_TUPLE, NEWOBJ, state, BUILD
    return b"\x80\x02ctrl.trainer.sft_config\nSFTConfig\n)\x81" + content[2:-1] + b"b."


@pytest.mark.parametrize("place", ["", "trainer_state.json"])
def test_log_and_settings_of_a_state(put, read, place):
    run = read(put({"trainer_state.json": STATE}) / place)
    assert (run.reader, run.readers, run.training.tool) == ("hf", ("hf",), "transformers")
    assert (run.log.global_step, run.log.max_steps, run.log.epoch) == (3, 4, 1.5)
    assert run.training.get("num_train_epochs") == 2
    assert run.training.values["num_train_epochs"].source == "trainer_state.json (rounded up)"
    assert run.training.get("warmup_ratio") is None
    assert run.training.values["max_grad_norm"].basis == "default"
    assert math.isnan(run.log.records[1]["loss"])
    assert math.isinf(run.log.records[1]["grad_norm"])
    assert run.log.finished is None


@pytest.mark.parametrize("name", ["01-trainer_state.json", "cut.json"])
def test_states_and_pieces_of_other_names(put, read, name):
    assert read(put({name: STATE}) / name).log.global_step == 3
    run = read(put({name: STATE["log_history"]}) / name)
    assert len(run.log.records) == 2
    assert run.log.max_steps is None


def test_the_end_of_training_is_recorded(put, read):
    for stop in (True, False):
        control = {"TrainerControl": {"args": {"should_training_stop": stop}}}
        folder = put({"trainer_state.json": STATE | {"stateful_callbacks": control}})
        assert read(folder).log.finished is stop


@pytest.mark.parametrize(
    ("epoch", "steps", "epochs", "cap"),
    [
        (0.6685, 60, 1, 60),  # cut off by max_steps
        (2.0, 180, 2, None),
        (2.9908, 201, 3, None),  # an epoch is no whole number of steps
        (2.9966, 768, 3, None),
        (1.9969, 692, 2, None),
        (3.0, 6, 3, None),
    ],
)
def test_a_run_that_max_steps_cut_off(put, read, epoch, steps, epochs, cap):
    state = STATE | {
        "epoch": epoch,
        "global_step": steps,
        "max_steps": steps,
        "num_train_epochs": epochs,
    }
    assert read(put({"trainer_state.json": state})).training.get("max_steps") == cap


def test_takes_the_numerically_last_checkpoint(put, read):
    folder = put(
        {
            f"checkpoint-{name}/trainer_state.json": STATE | {"global_step": step}
            for name, step in [("200", 200), ("1000", 1000), ("30", 30), ("best", 9999)]
        }
    )
    run = read(folder)
    assert run.log.global_step == 1000
    assert "The log is that of checkpoint-1000, the last of 3 trainer states." in run.notes
    assert read(folder / "checkpoint-200").log.global_step == 200


def test_a_checkpoint_has_its_own_state_and_its_runs_arguments(put, read):
    folder = put(
        {
            "trainer_state.json": STATE | {"global_step": 90},
            "checkpoint-60/trainer_state.json": STATE | {"global_step": 60},
            "checkpoint-60/adapter_config.json": ADAPTER,
            "training_args.bin": arguments(),
            "README.md": TRL_CARD,
        }
    )
    run = read(folder / "checkpoint-60")
    assert run.log.global_step == 60
    assert run.training.get("learning_rate") == 2e-4
    assert run.training.versions["trl"].value == "0.24.0"
    assert run.adapter.path == folder / "checkpoint-60"


def test_checkpoints_that_are_not_of_one_run(put, read):
    contents = {}
    for step, planned, rank in [(60, 60, 8), (90, 90, 8), (180, 180, 16)]:
        state = STATE | {"global_step": step, "max_steps": planned}
        contents[f"checkpoint-{step}/trainer_state.json"] = state
        contents[f"checkpoint-{step}/adapter_config.json"] = ADAPTER | {"r": rank}
    run = read(put(contents))
    mixed = [note for note in run.notes if "not of one run" in note]
    assert any("max_steps is 60 in checkpoint-60" in note for note in mixed)
    assert any("r is 8 in checkpoint-60" in note and "16" in note for note in mixed)
    assert run.adapter.r == 16


def test_checkpoints_of_one_run(put, read):
    contents = {}
    for step, order in [(60, ["q_proj", "v_proj"]), (120, ["v_proj", "q_proj"])]:
        contents[f"checkpoint-{step}/trainer_state.json"] = STATE | {"global_step": step}
        contents[f"checkpoint-{step}/adapter_config.json"] = ADAPTER | {"target_modules": order}
    assert not any("not of one run" in note for note in read(put(contents)).notes)


@pytest.mark.parametrize("place", ["adapter", "final", "checkpoint-3"])
def test_finds_the_adapter_beside_the_log(put, read, place):
    folder = put({"trainer_state.json": STATE, f"{place}/adapter_config.json": ADAPTER})
    adapter = read(folder).adapter
    assert (adapter.r, adapter.lora_alpha, adapter.path.name) == (8, 16, place)
    assert (adapter.base_model, adapter.basis) == ("org/base", "ran")


def test_an_adapter_folder_brings_its_run(put, read):
    folder = put({"final/adapter_config.json": ADAPTER, "checkpoint-3/trainer_state.json": STATE})
    run = read(folder / "final")
    assert run.log.global_step == 3
    assert run.adapter.path == folder / "final"
    assert any("was read as its run" in note for note in run.notes)


def test_an_adapter_alone_tells_nothing_of_the_training(put, read):
    run = read(put({"adapter_config.json": ADAPTER, "sub/x.txt": ""}))
    assert run.training is None
    assert run.log is None
    assert run.adapter.r == 8


@pytest.mark.parametrize(
    ("raw", "version"),
    [
        (ADAPTER | {"peft_version": "0.18.0"}, "0.18.0"),
        (ADAPTER | {"peft_version": "0.18.2.dev0@UNKNOWN"}, "0.18.2.dev0"),
    ],
)
def test_the_version_of_peft(put, read, raw, version):
    run = read(put({"adapter_config.json": raw, "trainer_state.json": STATE}))
    assert run.training.versions["peft"].value == version


def test_other_adapters_and_full_fine_tunes_are_named(put, read):
    other = {"peft_type": "IA3", "target_modules": None}
    run = read(put({"ia3/adapter_config.json": other}) / "ia3" / "adapter_config.json")
    assert "IA3" in run.refusals["not_a_lora_run"]
    assert (run.adapter.peft_type, run.adapter.r) == ("IA3", None)
    full = {"trainer_state.json": STATE, "config.json": {}, "model.safetensors": b"x"}
    run = read(put({f"full/{name}": content for name, content in full.items()}) / "full")
    assert "whole model" in run.refusals["not_a_lora_run"]
    assert run.training.get("finetuning_type") == "full"


@pytest.mark.parametrize("place", ["", "training_args.bin"])
def test_saved_arguments(put, read, place):
    run = read(put({"training_args.bin": arguments()}) / place)
    training = run.training
    assert training.tool == "trl"
    assert {name: training.get(name) for name in ("learning_rate", "seed", "warmup_steps")} == {
        "learning_rate": 2e-4,
        "seed": 3407,
        "warmup_steps": 0.1,
    }
    assert training.get("max_grad_norm") == 0.0
    assert training.get("max_seq_length") == 2048
    assert training.get("packing") is True
    assert training.get("stage") == "sft"
    assert training.get("overlong_rows") == "cut_right"
    assert training.values["has_eval_set"].value is False
    assert training.values["learning_rate"].source == "training_args.bin"
    assert training.values["learning_rate"].basis == "ran"
    assert "secret" not in repr(run)


def test_old_names_in_saved_arguments(put, read):
    old = arguments(max_length=None, max_seq_length=512, evaluation_strategy="steps")
    training = read(put({"training_args.bin": old.replace(b"max_length", b"xax_length")})).training
    assert training.get("max_seq_length") == 512
    unset = arguments(max_seq_length=None, eval_strategy=None, evaluation_strategy="epoch")
    folder = put({"training_args.bin": unset.replace(b"max_length", b"xax_length")})
    training = read(folder).training
    assert training.get("eval_strategy") == "epoch"
    assert training.get("has_eval_set") is True


@pytest.mark.parametrize(
    ("name", "stage"),
    [("DPOConfig", "dpo"), ("GRPOConfig", "grpo"), ("RewardConfig", "rm"), ("KTOConfig", "kto")],
)
def test_preference_runs_are_named(put, read, name, stage):
    saved = arguments().replace(b"\nSFTConfig", f"\n{name}".encode())
    run = read(put({"training_args.bin": saved}))
    assert run.training.get("stage") == stage
    assert stage.upper() in run.refusals["not_sft"]


def test_trls_card_has_no_settings(put, read):
    run = read(put({"README.md": TRL_CARD}))
    training = run.training
    assert training.tool == "unsloth"
    assert training.version is None
    assert training.versions["trl"].source == "README.md:16"
    assert training.versions["transformers"].value == "5.0.0rc1"
    assert {name: v.value for name, v in training.values.items()} == {
        "base_model": "unsloth/Ministral-3-3B-Instruct-2512",
        "stage": "sft",
    }
    assert run.log is None


def test_transformers_card(put, read):
    run = read(put({"README.md": HF_CARD}))
    training = run.training
    assert (training.tool, training.version) == ("transformers", "4.51.3")
    expected = {
        "learning_rate": 1e-4,
        "world_size": 3,
        "total_train_batch_size": 48,
        "optim": "adamw_torch",
        "adam_beta2": 0.95,
        "max_steps": 500,
        "warmup_steps": 0,
        "fp16": True,
        "label_smoothing_factor": 0.0,
    }
    assert {name: training.get(name) for name in expected} == expected
    assert training.get("num_train_epochs") is None
    assert training.get("weight_decay") is None
    assert (run.log.global_step, run.log.max_steps) == (500, 500)
    assert math.isnan(run.log.records[-1]["eval_loss"])
    assert run.log.records[0] == {"step": 0, "epoch": 0.0, "eval_loss": 4.0502}


def test_trl_by_what_it_logs(put, read):
    history = [{"step": 1, "loss": 1.0, "mean_token_accuracy": 0.5, "num_tokens": 10.0}]
    assert (
        read(put({"trainer_state.json": STATE | {"log_history": history}})).training.tool == "trl"
    )


def test_summaries_close_the_log(put, read):
    summary = {"epoch": 3.0, "train_loss": 0.97, "train_runtime": 100.0, "eval_loss": 1.2}
    run = read(put({"trainer_state.json": STATE, "all_results.json": summary}))
    assert run.log.records[-1]["train_loss"] == 0.97
    assert run.log.records[-2]["eval_loss"] == 1.2
    assert run.training.get("has_eval_set") is True
    alone = read(put({"only/all_results.json": summary}) / "only")
    assert [sorted(record) for record in alone.log.records] == [
        ["epoch", "eval_loss"],
        ["epoch", "train_loss", "train_runtime"],
    ]


PRINTED = """\
Map: 100%|##########| 800/800 [00:00<00:00, 9000 examples/s]
  0%|          | 0/20 [00:00<?, ?it/s]\r 50%|#####     | 10/20 [00:10<00:10,  1.00it/s]
{'loss': %s, 'grad_norm': %s, 'learning_rate': %s, 'epoch': %s}
 50%|#####     | 10/20 [00:10<00:10,  1.00it/s]
  0%|          | 0/4 [00:00<?, ?it/s]\r100%|##########| 4/4 [00:01<00:00,  4.00it/s]
{'eval_loss': %s, 'eval_runtime': 1.5, 'epoch': 0.5}
100%|##########| 20/20 [00:20<00:00,  1.00it/s]
{'loss': %s, 'grad_norm': %s, 'learning_rate': 0.0, 'epoch': 1.0}
100%|##########| 20/20 [00:20<00:00,  1.00it/s]
{'train_runtime': 20.1, 'train_loss': 1.1, 'epoch': 1.0}
"""


def shown(numbers):
    parts = PRINTED.split("%s")
    return "".join(text + number for text, number in zip(parts, (*numbers, ""), strict=True))


NUMBERS = ("1.2", "0.5", "1e-05", "0.5", "1.3", "nan", "inf")


@pytest.mark.parametrize("quoted", [False, True])
def test_what_a_console_shows(put, read, quoted):
    numbers = tuple(f"'{n}'" for n in NUMBERS) if quoted else NUMBERS
    run = read(put({"train.log": shown(numbers)}) / "train.log")
    records = run.log.records
    assert [record.get("step") for record in records] == [10, 20, 20, 20]
    assert records[0]["loss"] == 1.2
    assert records[0]["learning_rate"] == 1e-5
    assert records[1]["eval_loss"] == 1.3
    assert math.isnan(records[2]["loss"])
    assert math.isinf(records[2]["grad_norm"])
    assert run.log.max_steps == 20


def test_a_console_without_bars(put, read):
    run = read(put({"train.log": "{'loss': 1.0, 'epoch': 0.5}\n"}) / "train.log")
    assert "step" not in run.log.records[0]
    assert any("prints no steps" in note for note in run.notes)


def test_nothing_to_read(tmp_path):
    assert not HFRunReader().can_read(tmp_path)
    with pytest.raises(InputError, match="holds nothing"):
        HFRunReader().read(tmp_path)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "is not JSON"),
        ("[]", "not a JSON object"),
        ('{"log_history": 3}', "log_history"),
        ('{"log_history": [3]}', "log_history"),
        ("[" * 100_000, "is not JSON"),
        ('{"log_history": ' + "[" * 100_000, "is not JSON"),
        ('{"log_history": [' + "[]," * 5_000_000, "more than 4,000,000 values"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8"),
        ('{"a": ' + "9" * 100_000 + "}", "is not JSON"),
    ],
)
def test_damaged_states(put, text, word):
    folder = put({"trainer_state.json": text})
    with pytest.raises(InputError, match=word):
        HFRunReader().read(folder)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_states_of_windows(put, read, mark):
    text = mark + json.dumps(STATE, indent=1).replace("\n", "\r\n")
    assert read(put({"trainer_state.json": text.encode()})).log.global_step == 3


def test_damage_does_not_hide_the_rest(put, read):
    run = read(put({"trainer_state.json": "{", "adapter_config.json": ADAPTER}))
    assert run.adapter.r == 8
    assert any("trainer_state.json is not JSON" in note for note in run.notes)


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 6412\n"


@pytest.mark.parametrize(
    "name",
    ["trainer_state.json", "adapter_config.json", "training_args.bin", "all_results.json"],
)
@pytest.mark.parametrize("alone", [True, False])
def test_lfs_pointers_are_named(put, read, name, alone):
    folder = put({name: POINTER})
    run = read(folder / name if alone else folder)
    assert "Git-LFS" in run.refusals["file_is_lfs_pointer"]
    assert run.training is None
    assert run.log is None


def test_a_pointer_beside_readable_files(put, read):
    run = read(put({"trainer_state.json": STATE, "training_args.bin": POINTER}))
    assert run.log.global_step == 3
    assert "training_args.bin" in run.refusals["file_is_lfs_pointer"]


def test_a_pointer_in_place_of_weights(put, read):
    contents = {"adapter_config.json": ADAPTER, "adapter_model.safetensors": POINTER}
    run = read(put(contents))
    assert run.adapter.r == 8
    assert "adapter_model" in run.refusals["file_is_lfs_pointer"]
