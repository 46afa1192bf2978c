"""axolotl's config, by itself and inside the model card."""

from __future__ import annotations

import pytest

from gradian_core.errors import InputError
from gradian_plugins.runs.axolotl import AxolotlRunReader

CONFIG = """\
base_model: org/base-7b
model_type: MistralForCausalLM
load_in_4bit: true
datasets:
  - path: data.jsonl
    type: alpaca
val_set_size: 0.1
adapter: qlora
lora_model_dir:
sequence_len: 8192
sample_packing: true
lora_r: 32
lora_alpha: 16
lora_dropout: 0.05
lora_target_linear: true
gradient_accumulation_steps: 4
micro_batch_size: 2
num_epochs: 1
optimizer: adamw_bnb_8bit
lr_scheduler: cosine
learning_rate: 2e-4
bf16: auto
fp16:
flash_attention: true
loss_watchdog_threshold: 5.0
warmup_steps: 10
special_tokens:
  pad_token: "<|pad|>"
"""

CARD = """\
---
library_name: peft
base_model: org/base-7b
---

<details><summary>See axolotl config</summary>

axolotl version: `0.7.0`
```yaml
base_model: org/base-7b
model_type: AutoModelForCausalLM
datasets:
  - path: data.jsonl
    type: alpaca
# ### Training hyperparameters
val_set_size: 0.05
adapter: lora
peft_type: LORA
lora_r: 8
lora_alpha: 16
lora_target_modules:
  - dense
use_bnb: true
micro_batch_size: 1
gradient_accumulation_steps: 4
num_train_epochs: 3
learning_rate: 2e-4
lr_scheduler_type: cosine
warmup_ratio: 0.05
report_to: none
```

</details><br>

### Training hyperparameters

The following hyperparameters were used during training:
- learning_rate: 0.0002
- train_batch_size: 1
- eval_batch_size: 1
- seed: 42
- gradient_accumulation_steps: 4
- total_train_batch_size: 4
- optimizer: Use OptimizerNames.ADAMW_BNB with betas=(0.9,0.999) and epsilon=1e-08 and \
optimizer_args=No additional optimizer arguments
- lr_scheduler_type: cosine
- lr_scheduler_warmup_steps: 23
- num_epochs: 1.0

### Training results

| Training Loss | Epoch  | Step | Validation Loss |
|:-------------:|:------:|:----:|:---------------:|
| No log        | 0.0021 | 1    | 2.8055          |
| 0.1912        | 0.2105 | 100  | 0.2012          |
| 0.1134        | 0.4211 | 200  | 0.0800          |
| 0.1134        | 0.6316 | 300  | 0.0850          |

### Framework versions

- PEFT 0.14.0
- Transformers 4.48.3
- Pytorch 2.5.1+cu121
"""


def test_a_config(put, read):
    run = read(put({"qlora.yml": CONFIG}) / "qlora.yml")
    training = run.training
    assert (training.tool, training.version, run.readers) == ("axolotl", None, ("axolotl",))
    assert training.values["learning_rate"].value == 2e-4
    assert training.values["learning_rate"].source == "qlora.yml:21"
    assert training.get("optim") == "adamw_bnb_8bit"
    assert training.get("has_eval_set") is True
    assert training.get("packing_isolated") is True
    assert training.get("overlong_rows") == "drop"
    assert training.get("pad_token") == "<|pad|>"
    assert training.get("warmup_steps") == 10
    assert training.get("train_on_prompt") is False
    assert training.values["max_grad_norm"].basis == "default"
    assert training.values["seed"].source == "default of axolotl (that of transformers)"
    assert training.unknown_keys == ()
    assert run.adapter.raw["target_modules"] == "all-linear"
    assert (run.adapter.r, run.adapter.lora_alpha, run.adapter.basis) == (32, 16, "asked")
    assert run.notes == ()


def test_absent_is_never_off(put, read):
    small = "base_model: b\nadapter: lora\nlora_r: 8\nlora_alpha: 16\nlearning_rate: 1e-4\n"
    training = read(put({"c.yml": small}) / "c.yml").training
    assert training.get("num_train_epochs") == 1.0
    assert training.get("warmup_ratio") == 0.03
    assert "3 %" in training.values["warmup_ratio"].source
    assert training.get("max_seq_length") == 512
    assert training.get("max_grad_norm") == 1.0
    assert training.get("per_device_train_batch_size") == 1
    assert training.get("bf16") == "auto"
    assert training.get("has_eval_set") is False


@pytest.mark.parametrize("place", ["", "README.md"])
def test_a_card(put, read, place):
    run = read(put({"README.md": CARD}) / place)
    training = run.training
    assert run.readers == ("axolotl", "hf")
    assert (training.tool, training.version) == ("axolotl", "0.7.0")
    assert training.version_source == "README.md (axolotl version)"
    assert training.versions["transformers"].value == "4.48.3"
    assert training.values["num_train_epochs"].value == 1.0
    assert training.values["num_train_epochs"].basis == "ran"
    assert training.requested["num_train_epochs"].value == 3
    lines = CARD.splitlines()
    place = f"README.md:{lines.index('num_train_epochs: 3') + 1}"
    assert training.requested["num_train_epochs"].source == f"{place} (unknown to axolotl)"
    assert training.get("optim") == "adamw_bnb_8bit"
    assert (training.get("warmup_steps"), training.get("warmup_ratio")) == (23, 0.05)
    assert training.get("world_size") == 1
    assert {key.name: key.meant for key in training.unknown_keys} == {
        "peft_type": "adapter",
        "use_bnb": None,
        "num_train_epochs": "num_epochs",
        "lr_scheduler_type": "lr_scheduler",
        "report_to": None,
    }
    assert {key.name: key.source for key in training.unknown_keys}["num_train_epochs"] == place
    assert run.log.max_steps == 475
    assert run.log.global_step is None
    assert [r["loss"] for r in run.log.records if "loss" in r] == [0.1912, 0.1134]
    assert [r["eval_loss"] for r in run.log.records if "eval_loss" in r] == [
        2.8055,
        0.2012,
        0.08,
        0.085,
    ]


def test_a_full_fine_tune(put, read):
    text = CONFIG.replace("adapter: qlora\n", "prompt_style: chat\n")
    text = text.replace("type: alpaca\n", "type: alpaca\n    prompt_style: chat\n")
    run = read(put({"c.yml": text}) / "c.yml")
    assert run.adapter is None
    assert run.training.get("finetuning_type") == "full"
    assert "adapter" in run.refusals["not_a_lora_run"]
    names = [key.name for key in run.training.unknown_keys]
    assert names == ["prompt_style", "datasets.0.prompt_style"]


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("rl: dpo", "stage", "dpo"),
        ("test_datasets: [{path: v.jsonl, type: alpaca}]", "has_eval_set", True),
        ("warmup_steps: 1", "warmup_steps", 2),
        ("max_steps: 500", "max_steps", 500),
        ("excess_length_strategy: truncate", "overlong_rows", "cut_right"),
        ("deepspeed: ds.json", "deepspeed", "ds.json"),
    ],
)
def test_single_keys(put, read, line, name, value):
    key = line.split(":")[0]
    kept = [row for row in CONFIG.split("\n") if not row.startswith((key, "val_set_size"))]
    run = read(put({"c.yml": "\n".join([*kept, line])}) / "c.yml")
    assert run.training.get(name) == value
    assert ("not_sft" in run.refusals) is (key == "rl")


def test_whole_text_data_sets_train_on_prompts(put, read):
    text = CONFIG.replace("type: alpaca", "type: completion") + "train_on_inputs: false\n"
    training = read(put({"c.yml": text}) / "c.yml").training
    assert training.get("train_on_prompt") is True
    assert training.values["train_on_prompt"].source == "c.yml:6 (type: completion)"


def test_keys_of_listed_plugins_are_known(put, read):
    text = CONFIG + "plugins: [axolotl.integrations.liger.LigerPlugin]\nliger_rope: true\n"
    assert read(put({"c.yml": text}) / "c.yml").training.unknown_keys == ()
    alone = CONFIG + "liger_rope: true\n"
    unknown = read(put({"c.yml": alone}) / "c.yml").training.unknown_keys
    assert [key.name for key in unknown] == ["liger_rope"]


def test_other_files_are_not_taken(put):
    folder = put({"other.yml": "name: ci\non: push\njobs: {}\n", "README.md": "# A project\n"})
    assert not AxolotlRunReader().can_read(folder)
    assert not AxolotlRunReader().can_read(folder / "other.yml")


def test_a_damaged_config_in_a_card(put, read):
    run = read(put({"README.md": CARD.replace("lora_r: 8", "lora_r: [8")}))
    assert any("README.md" in note and "not valid YAML" in note for note in run.notes)


def test_a_damaged_config_alone(put, read):
    folder = put({"c.yml": CONFIG + "x: [\n"})
    with pytest.raises(InputError, match=r"c\.yml:\d+: not valid YAML"):
        read(folder / "c.yml")
    with pytest.raises(InputError, match=r"c\.yml:\d+: not valid YAML"):
        read(folder)
