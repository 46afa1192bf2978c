"""Training scripts: constants are read, nothing is executed."""

from __future__ import annotations

import pytest

from gradian_core.errors import GradianError

SCRIPT = """\
import os
from trl import SFTConfig, SFTTrainer
from peft import LoraConfig, get_peft_model
open("EXECUTED", "w")
model = AutoModelForCausalLM.from_pretrained("org/base-1b", torch_dtype="auto")
config = LoraConfig(
    r=16,
    lora_alpha=os.cpu_count(),
    target_modules=["q_proj", "v_proj"],
)
model = get_peft_model(model, config)
args = SFTConfig(
    output_dir=out,
    learning_rate=2e-3,
    num_train_epochs=12,
    max_length=48,
    per_device_train_batch_size=BATCH,
    max_steps=-1,
)
"""


def test_constants_with_their_lines_and_defaults_by_name(put, read, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    run = read(put({"train.py": SCRIPT}) / "train.py")
    assert run.reader == "script"
    values = run.training.values
    assert run.training.tool == "trl"
    assert (values["learning_rate"].value, values["learning_rate"].source) == (2e-3, "train.py:14")
    assert values["num_train_epochs"].source == "train.py:15"
    assert values["max_seq_length"].value == 48
    assert values["base_model"].value == "org/base-1b"
    assert values["stage"].value == "sft"
    assert (values["max_grad_norm"].value, values["max_grad_norm"].basis) == (1.0, "default")
    # computed when the script runs: unknown, and no default in its place
    assert "per_device_train_batch_size" not in values
    assert run.adapter.r == 16
    assert run.adapter.lora_alpha is None
    assert run.adapter.base_model == "org/base-1b"
    assert any("per_device_train_batch_size" in note and "computed" in note for note in run.notes)
    assert any("lora_alpha" in note for note in run.notes)
    assert not (tmp_path / "EXECUTED").exists()


def test_a_plain_trainer_has_its_own_defaults(put, read):
    run = read(
        put({"t.py": "a = transformers.TrainingArguments('out', warmup_steps=20)\n"}) / "t.py"
    )
    values = run.training.values
    assert run.training.tool == "transformers"
    assert values["learning_rate"].value == 5e-5
    assert values["warmup_steps"].value == 20
    assert run.adapter is None


def test_unpacked_arguments_leave_no_default(put, read):
    run = read(put({"t.py": "a = TrainingArguments(seed=1, **rest)\n"}) / "t.py")
    assert run.training.values["seed"].value == 1
    assert "learning_rate" not in run.training.values
    assert any("**" in note for note in run.notes)


def test_unsloth(put, read):
    text = (
        "m, t = FastLanguageModel.from_pretrained(model_name='unsloth/x', max_seq_length=2048)\n"
        "m = FastLanguageModel.get_peft_model(m, r=32, target_modules=['q_proj'])\n"
        "a = SFTConfig(learning_rate=1e-4)\na = SFTConfig(learning_rate=5e-4)\n"
    )
    run = read(put({"t.py": text}) / "t.py")
    assert run.training.tool == "unsloth"
    assert run.training.values["learning_rate"].value == 1e-4
    assert (run.adapter.r, run.adapter.lora_alpha) == (32, 16)
    assert run.adapter.base_model == "unsloth/x"
    assert any("lines 3, 4" in note for note in run.notes)


@pytest.mark.parametrize(
    "text",
    [
        "TrainingArguments(",
        "TrainingArguments(lr=\0)",
        "x = TrainingArguments(" + "(" * 100_000,
        "x = TrainingArguments(" + "-" * 100_000 + "1)",
        "# TrainingArguments\n" + "x = 1\n" * 300_000,
        "# nothing of the kind: torch.optim.AdamW(lr=1)\n",
    ],
    ids=["cut", "null", "deep", "minus", "large", "other"],
)
def test_what_cannot_be_read_is_refused(put, read, text):
    with pytest.raises(GradianError):
        read(put({"t.py": text}) / "t.py")


@pytest.mark.parametrize("value", ["'fast'", "{}", "[1]", "1e999", "None", "True", "-1", "b'x'"])
def test_odd_constants(put, read, value):
    run = read(put({"t.py": f"TrainingArguments(learning_rate={value}, seed={value})"}) / "t.py")
    assert run.training is not None
