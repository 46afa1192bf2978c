"""Public runs, where their files lie beside the checkout; each with what is known of it."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "realfiles"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the public files are not here")


@pytest.fixture
def real(read):
    def find(number):
        (path,) = FOLDER.glob(f"{number}-*")
        return read(path)

    return find


def settings(run, *names):
    return {name: run.training.get(name) for name in names}


def test_01_sixty_steps_of_ninety(real):
    run = real("01")
    rates = [record["learning_rate"] for record in run.log.records]
    assert (len(run.log.records), run.log.global_step, run.log.max_steps) == (60, 60, 60)
    assert run.log.epoch == pytest.approx(0.6685, abs=1e-4)
    assert run.log.finished is True
    assert (rates[0], max(rates)) == (0.0, 2e-4)
    assert settings(run, "max_steps", "has_eval_set") == {"max_steps": 60, "has_eval_set": False}


def test_02_resumed(real):
    run = real("02")
    rates = {record["step"]: record["learning_rate"] for record in run.log.records}
    assert len(rates) == 180
    assert rates[61] == 0.0
    assert rates[62] > 10 * rates[60]
    assert run.training.get("max_steps") is None


def test_01_and_02_are_checkpoints_of_two_runs(read, tmp_path):
    for number, step in [("01", 60), ("02", 180)]:
        (path,) = FOLDER.glob(f"{number}-*")
        (tmp_path / f"checkpoint-{step}").mkdir()
        shutil.copy(path, tmp_path / f"checkpoint-{step}" / "trainer_state.json")
    run = read(tmp_path)
    assert run.log.global_step == 180
    assert any("max_steps is 60 in checkpoint-60, 180 in checkpoint-180" in n for n in run.notes)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("04", ("unsloth/Ministral-3-3B-Instruct-2512", 16, 16, 7)),
        ("11", ("./Qwen2.5-7B-Instruct", 8, 16, 7)),
        ("20", ("Vikhrmodels/QVikhr-3-1.7B-Instruction-noreasoning", 32, 64, 3)),
        ("26", (None, 64, 64, None)),
        ("27", (None, 32, 64, None)),
        ("49", ("microsoft/DialoGPT-small", 4, 8, 2)),
    ],
)
def test_adapters(real, number, expected):
    run = real(number)
    adapter = run.adapter
    targets = adapter.raw["target_modules"]
    found = (adapter.base_model, adapter.r, adapter.lora_alpha, targets and len(targets))
    assert found == expected
    assert (adapter.peft_type, adapter.basis, run.refusals) == ("LORA", "ran", {})
    assert adapter.raw.get("use_rslora") is (number == "26")


@pytest.mark.parametrize(
    ("number", "version"), [("04", "0.18.0"), ("11", "0.17.0"), ("49", "0.17.0")]
)
def test_versions_of_peft(read, tmp_path, number, version):
    (path,) = FOLDER.glob(f"{number}-*")
    (state,) = FOLDER.glob("48-*")
    shutil.copy(path, tmp_path / "adapter_config.json")
    shutil.copy(state, tmp_path / "trainer_state.json")
    found = read(tmp_path).training.versions["peft"]
    assert found.value == version
    assert found.basis == ("ran" if number == "04" else "inferred")


def test_06_a_card_without_settings(real):
    run = real("06")
    assert run.training.tool == "unsloth"
    assert {name: value.value for name, value in run.training.versions.items()} == {
        "trl": "0.24.0",
        "transformers": "5.0.0rc1",
        "torch": "2.9.1",
        "datasets": "4.3.0",
        "tokenizers": "0.22.1",
    }
    assert set(run.training.values) == {"base_model", "stage"}
    assert (run.log, run.adapter) == (None, None)


@pytest.mark.parametrize("number", ["07", "08"])
def test_lfs_pointers(real, number):
    run = real(number)
    assert "git lfs pull" in run.refusals["file_is_lfs_pointer"]
    assert (run.training, run.adapter, run.log) == (None, None, None)


def test_10_llamafactory(real):
    run = real("10")
    assert run.training.tool == "llamafactory"
    assert settings(
        run,
        "learning_rate",
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "num_train_epochs",
        "warmup_ratio",
        "has_eval_set",
        "load_in_4bit",
        "max_seq_length",
        "seed",
        "train_on_prompt",
        "chat_template",
    ) == {
        "learning_rate": 1e-4,
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": 8,
        "num_train_epochs": 3.0,
        "warmup_ratio": 0.1,
        "has_eval_set": True,
        "load_in_4bit": True,
        "max_seq_length": 2048,
        "seed": 42,
        "train_on_prompt": False,
        "chat_template": "qwen",
    }
    assert run.training.values["seed"].basis == "default"
    assert (run.adapter.r, run.adapter.lora_alpha) == (8, 16)
    assert len(run.adapter.raw["target_modules"]) == 7


def test_13_llamafactorys_log(real):
    log = real("13").log
    assert (log.global_step, log.max_steps, log.epoch, log.finished) == (6750, 6750, 3.0, True)
    assert not any("grad_norm" in record for record in log.records)
    held_out = [record["eval_loss"] for record in log.records if "eval_loss" in record]
    assert held_out[-1] == pytest.approx(1.578, abs=1e-3)
    assert all("loss" in record or "eval_loss" in record for record in log.records)
    assert log.records[-1]["learning_rate"] == pytest.approx(6.7e-12, rel=0.01)


def test_16_the_state(real):
    run = real("16")
    assert (run.log.global_step, run.log.max_steps, len(run.log.records)) == (201, 201, 20)
    assert run.log.records[0]["learning_rate"] == pytest.approx(1.9e-4, rel=0.01)
    assert settings(run, "max_steps", "has_eval_set", "max_grad_norm") == {
        "max_steps": None,
        "has_eval_set": False,
        "max_grad_norm": 1.0,
    }


def test_18_the_arguments(real):
    run = real("18")
    assert (run.training.tool, run.training.version) == ("transformers", "4.50")
    expected = {
        "fp16": True,
        "bf16": False,
        "per_device_train_batch_size": 16,
        "gradient_accumulation_steps": 8,
        "world_size": 1,
        "total_train_batch_size": 128,
        "learning_rate": 2e-4,
        "lr_scheduler_type": "linear",
        "warmup_steps": 0,
        "warmup_ratio": 0.0,
        "eval_strategy": "no",
        "has_eval_set": False,
        "seed": 42,
        "max_grad_norm": 1.0,
        "optim": "paged_adamw_32bit",
    }
    assert settings(run, *expected) == expected
    assert "hostname1" not in repr(run)


def test_16_and_18_together(read, tmp_path):
    for number, name in [("16", "trainer_state.json"), ("18", "training_args.bin")]:
        (path,) = FOLDER.glob(f"{number}-*")
        shutil.copy(path, tmp_path / name)
    run = read(tmp_path)
    assert run.training.values["max_grad_norm"].source == "training_args.bin"
    assert run.training.values["num_train_epochs"].source == "training_args.bin"
    assert run.training.get("max_steps") == -1
    assert len(run.log.records) == 20


def test_23_mlx_and_not_peft(real):
    run = real("23")
    assert (run.training.tool, run.adapter.peft_type) == ("mlx-lm", "LORA")
    assert settings(
        run,
        "learning_rate",
        "max_steps",
        "per_device_train_batch_size",
        "num_layers",
        "train_on_prompt",
        "seed",
        "warmup_steps",
        "max_grad_norm",
    ) == {
        "learning_rate": 2e-5,
        "max_steps": 300,
        "per_device_train_batch_size": 1,
        "num_layers": 4,
        "train_on_prompt": True,
        "seed": 0,
        "warmup_steps": 0,
        "max_grad_norm": 0.0,
    }
    assert run.adapter.lora_alpha / run.adapter.r == 20
    assert run.adapter.raw["target_modules"] == "all-linear"


def test_29_no_lora(real):
    run = real("29")
    assert run.adapter.peft_type == "IA3"
    assert "IA3" in run.refusals["not_a_lora_run"]


def test_30_axolotl_of_old(real):
    run = real("30")
    assert settings(
        run, "max_seq_length", "packing", "packing_isolated", "has_eval_set", "max_grad_norm"
    ) == {
        "max_seq_length": 8192,
        "packing": True,
        "packing_isolated": True,
        "has_eval_set": True,
        "max_grad_norm": 1.0,
    }
    assert run.training.unknown_keys == ()
    assert run.adapter.raw["target_modules"] == "all-linear"
    assert (run.adapter.r, run.adapter.lora_alpha) == (32, 16)


def test_31_axolotl_today(real):
    run = real("31")
    assert settings(run, "pad_token", "warmup_ratio", "train_on_prompt", "overlong_rows") == {
        "pad_token": "<|end_of_text|>",
        "warmup_ratio": 0.1,
        "train_on_prompt": False,
        "overlong_rows": "drop",
    }
    assert run.training.unknown_keys == ()


def test_34_llamafactorys_example(real):
    run = real("34")
    assert run.adapter.raw["target_modules"] == "all-linear"
    assert settings(run, "has_eval_set", "seed") == {"has_eval_set": False, "seed": 42}


def test_41_torchtune(real):
    run = real("41")
    values = run.training.values
    assert (values["max_grad_norm"].value, values["seed"].value) == (0.0, None)
    assert values["max_seq_length"].value is None
    assert settings(run, "learning_rate", "warmup_steps", "has_eval_set") == {
        "learning_rate": 3e-4,
        "warmup_steps": 100,
        "has_eval_set": False,
    }
    assert {"gate_proj", "up_proj", "down_proj"} <= set(run.adapter.raw["target_modules"])


def test_42_mlx(real):
    run = real("42")
    assert run.adapter.raw["target_modules"] == ["self_attn.q_proj", "self_attn.v_proj"]
    assert settings(run, "learning_rate", "max_steps") == {"learning_rate": 1e-5, "max_steps": 1000}


def test_48_six_steps(real):
    run = real("48")
    assert (run.log.global_step, len(run.log.records)) == (6, 1)
    assert run.training.get("learning_rate") is None


def test_51_no_loss(real):
    run = real("51")
    assert not any("loss" in record for record in run.log.records)
    assert run.training.get("train_loss") == pytest.approx(0.973, abs=1e-3)
    assert run.training.get("logging_steps") == 996


def test_53_a_prediction(real):
    run = real("53")
    assert list(run.refusals) == ["not_a_training_run"]
    assert (run.training, run.adapter, run.log) == (None, None, None)


def test_55_losses_of_two_scales(real):
    run = real("55")
    assert run.training.get("has_eval_set") is True
    last = {k: v for record in run.log.records[-2:] for k, v in record.items()}
    assert last["loss"] / last["eval_loss"] == pytest.approx(16.5, abs=0.1)


def test_57_a_piece_with_nan(real):
    records = real("57").log.records
    assert all(math.isnan(record["grad_norm"]) for record in records)
    assert records[1]["loss"] == 0.0


def test_58_keys_that_axolotl_ignored(real):
    run = real("58")
    assert (run.training.tool, run.training.version) == ("axolotl", "0.7.0")
    assert run.training.versions["transformers"].value == "4.48.3"
    assert {key.name: key.meant for key in run.training.unknown_keys} == {
        "num_train_epochs": "num_epochs",
        "lr_scheduler_type": "lr_scheduler",
        "peft_type": "adapter",
        "report_to": None,
        "use_bnb": None,
        "bnb_8bit_compute_dtype": None,
        "llm_int8_enable_fp32_cpu_offload": None,
    }
    assert run.training.values["num_train_epochs"].value == 1.0
    assert run.training.requested["num_train_epochs"].value == 3
    assert settings(run, "max_seq_length", "total_train_batch_size", "seed", "warmup_steps") == {
        "max_seq_length": 512,
        "total_train_batch_size": 4,
        "seed": 42,
        "warmup_steps": 23,
    }


def test_60_a_card_with_results(real):
    run = real("60")
    held_out = [record["eval_loss"] for record in run.log.records if "eval_loss" in record]
    losses = [record["loss"] for record in run.log.records if "loss" in record]
    assert (len(held_out), held_out[-1], min(held_out)) == (16, 0.2154, 0.2092)
    assert losses == [
        *(0.3256, 0.15, 0.1247, 0.0994, 0.092, 0.0872, 0.0722, 0.0702, 0.0695, 0.0621, 0.0606),
    ]
    assert settings(run, "total_train_batch_size", "world_size", "num_train_epochs") == {
        "total_train_batch_size": 48,
        "world_size": 3,
        "num_train_epochs": 4.0,
    }
    assert run.adapter.raw["target_modules"] == ["q_proj", "k_proj", "v_proj"]
    assert run.training.unknown_keys == ()


def test_62_steps_win_over_epochs(real):
    run = real("62")
    assert settings(run, "max_steps", "has_eval_set", "train_on_prompt", "load_in_4bit") == {
        "max_steps": 500,
        "has_eval_set": True,
        "train_on_prompt": True,
        "load_in_4bit": True,
    }
    assert (run.log.global_step, run.log.records[-1]["epoch"]) == (500, 1.4409)


def test_64_a_full_fine_tune(real):
    run = real("64")
    assert list(run.refusals) == ["not_a_lora_run"]
    assert [key.name for key in run.training.unknown_keys] == [
        "offload_folder",
        "prompt_fields",
        "hub_private_repo",
        "datasets.0.prompt_style",
    ]
    assert settings(run, "finetuning_type", "learning_rate", "has_eval_set", "warmup_ratio") == {
        "finetuning_type": "full",
        "learning_rate": 2e-5,
        "has_eval_set": True,
        "warmup_ratio": 0.03,
    }


def test_71_nan_on_the_console(real):
    run = real("71")
    assert run.training.tool == "mlx-lm"
    assert math.isnan(run.log.records[-1]["loss"])
    assert any("2 runs" in note for note in run.notes)


@pytest.mark.parametrize("number", ["22", "24", "36", "40", "65"])
def test_data_files_are_no_runs(read, number):
    from gradian_core.errors import InputError

    (path,) = FOLDER.glob(f"{number}-*")
    with pytest.raises(InputError, match="no run reader knows"):
        read(path)
