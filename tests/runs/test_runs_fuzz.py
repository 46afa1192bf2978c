"""Whatever a file holds is read or refused; nothing else happens."""

from __future__ import annotations

import contextlib
import json

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradian_core.errors import InputError
from gradian_core.runs.resolve import merge_runs
from gradian_plugins.runs.axolotl import AxolotlRunReader
from gradian_plugins.runs.gradian import GradianRunReader
from gradian_plugins.runs.hf import HFRunReader
from gradian_plugins.runs.llamafactory import LlamaFactoryRunReader
from gradian_plugins.runs.mlx import MlxRunReader
from gradian_plugins.runs.torchtune import TorchtuneRunReader
from gradian_plugins.runs.trl import TrlRunReader
from gradian_plugins.runs.wandb import WandbRunReader

READERS = [
    AxolotlRunReader(),
    GradianRunReader(),
    HFRunReader(),
    LlamaFactoryRunReader(),
    MlxRunReader(),
    TorchtuneRunReader(),
    TrlRunReader(),
    WandbRunReader(),
]
RUNS = {
    "axolotl.yml": """
        {base_model: b, micro_batch_size: 2, lora_r: 8, lora_alpha: 16, adapter: lora, bf16: auto,
        lora_target_modules: [q_proj], lora_target_linear: true, datasets: [{path: x, type: alpaca,
        odd: 1}], test_datasets: [], val_set_size: 0.1, num_epochs: 1, learning_rate: 2e-4, rl: dpo,
        special_tokens: {pad_token: x}, sample_packing: true, warmup_ratio: 0.1, warmup_steps: 3,
        plugins: [x], pretraining_dataset: x, batch_size: 8, lora_dropout: 0, num_train_epochs: 3,
        excess_length_strategy: drop, optimizer: adamw_torch, fp16: null}""",
    "lf.yaml": """
        {stage: sft, finetuning_type: lora, lora_rank: 8, lora_target: "a,b", lora_alpha: 16,
        quantization_bit: 4, val_size: 0.1, eval_dataset: x, do_train: true, do_predict: false,
        packing: true, neat_packing: false, additional_target: "x,y", num_train_epochs: 3.0,
        learning_rate: 1e-4, model_name_or_path: b, use_dora: false, pure_bf16: true}""",
    "torchtune_config.yaml": """
        {model: {_component_: torchtune.models.lora_x, lora_attn_modules: [q_proj], lora_rank: 8,
        lora_alpha: 16, apply_lora_to_mlp: true, use_dora: false}, tokenizer: {max_seq_len: null},
        optimizer: {_component_: torch.optim.AdamW, lr: 3e-4}, lr_scheduler: {_component_: cosine,
        num_warmup_steps: 9}, dataset: {_component_: torchtune.datasets.x, packed: true},
        seed: null, loss: {_component_: DPOLoss}, epochs: 1, max_steps_per_epoch: 5,
        clip_grad_norm: null, dtype: bf16,
        checkpointer: {checkpoint_dir: /x/y}, dataset_val: {}, batch_size: 2}""",
    "mlx.yaml": """
        {model: b, iters: 100, lora_parameters: {rank: 8, scale: 20.0, dropout: 0.0, keys: [q]},
        num_layers: 4, fine_tune_type: lora, lr_schedule: {name: cosine_decay, warmup: 1,
        arguments: [1e-5, 1]}, optimizer: adamw, optimizer_config: {adamw: {weight_decay: 1}},
        mask_prompt: true, grad_accumulation_steps: 2, val_batches: 1, train: true, test: false}""",
    "trl.yaml": """
        {model_name_or_path: b, dataset_name: d, use_peft: true, lora_r: 8, lora_alpha: 16, beta: 1,
        lora_target_modules: all-linear, lora_dropout: 0.1, eval_strategy: "no", max_length: 10}""",
    "trainer_state.json": """
        {epoch: 1.5, global_step: 3, max_steps: 3, num_train_epochs: 2, train_batch_size: 2,
        logging_steps: 1, save_steps: 2, stateful_callbacks: {TrainerControl: {args:
        {should_training_stop: true}}}, log_history: [{step: 1, loss: 1.0, train_loss: 1,
        learning_rate: 1}, {step: 2, eval_loss: 1.0, train_runtime: 1}]}""",
    "adapter_config.json": """
        {peft_type: LORA, r: 8, lora_alpha: 16, target_modules: [a], peft_version: "0.18.0",
        auto_mapping: {unsloth_fixed: true}, base_model_name_or_path: b}""",
    "trainer_log.jsonl": """
        {current_steps: 1, total_steps: 2, loss: 1.0, lr: 1.0, epoch: 1.0, eval_loss: 1.0}""",
    "config.yaml": """
        {_wandb: {value: {huggingface_version: "4.41.0"}}, learning_rate: {value: 1},
        per_device_train_batch_size: {value: 1}, gradient_accumulation_steps: {value: 1}, optim:
        {value: x}, eval_strategy: {value: steps}, max_grad_norm: {value: null}, _name_or_path:
        {value: b}, peft_config: {value: {default: {peft_type: LORA, r: 8}}},
        max_length: {value: 1}, completion_only_loss: {value: true}, packing: {value: true},
        distributed_state: {value: 1}, train_sampling_strategy: {value: x},
        model_init_kwargs: {value: {attn_implementation: x}}}""",
    "wandb-summary.json": """
        {train/global_step: 10, train/epoch: 1.0, train/loss: 1.0, eval/loss: 1.0,
        train_loss: 1}""",
    "gradian_run.json": """
        {format: gradian-run, format_version: "1.0", tool: trl, versions: {trl: "1.0"}, settings:
        {seed: 1}, arguments: {learning_rate: 1, optim: x}, adapter: {peft_type: LORA, r: 8},
        world_size: 1, log: {records: [{step: 1}], global_step: 1},
        arguments_class: a.SFTConfig}""",
    "all_results.json": "{epoch: 1.0, train_loss: 1.0, eval_loss: 1.0, train_runtime: 1.0}",
}
numbers = st.integers(-3, 10**6) | st.floats() | st.just(10**400)
words = st.sampled_from(["x", "no", "2e-4", "nan", "all", "", "1.0", "true", "a,b", "lora", "0"])
leaves = st.none() | st.booleans() | numbers | words
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def changed(draw):
    """Return a file's name and its content with up to four values replaced, at any depth."""
    name = draw(st.sampled_from(sorted(RUNS)))
    tree = yaml.safe_load(RUNS[name])
    for _ in range(draw(st.integers(1, 4))):
        place = tree
        while True:
            keys = sorted(place) if isinstance(place, dict) else range(len(place))
            key = draw(st.sampled_from(keys))
            inner = place[key]
            if not isinstance(inner, (dict, list)) or not inner or draw(st.booleans()):
                break
            place = inner
        place[key] = draw(values)
    return name, tree


EXAMPLES = 150
several = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def read_all(path):
    """Read with every reader that knows the path; return what could be read."""
    runs = []
    for reader in READERS:
        if reader.can_read(path):
            with contextlib.suppress(InputError):
                runs.append(reader.read(path))
    if runs:
        merge_runs(path, runs)
    return runs


@pytest.mark.parametrize("name", RUNS)
def test_unchanged_they_are_read(tmp_path, name):
    tree = yaml.safe_load(RUNS[name])
    as_json = name.split(".")[1].startswith("json")
    (tmp_path / name).write_text(json.dumps(tree) if as_json else yaml.safe_dump(tree))
    assert read_all(tmp_path)
    assert read_all(tmp_path / name)


@several
@given(changed(), st.booleans())
def test_any_values(tmp_path_factory, made, alone):
    name, tree = made
    folder = tmp_path_factory.mktemp("any")
    as_json = name.split(".")[1].startswith("json")
    (folder / name).write_text(json.dumps(tree) if as_json else yaml.safe_dump(tree))
    read_all(folder / name if alone else folder)


@several
@given(st.lists(st.sampled_from([
    "---", "tags: [dpo]", "base_model: [x]", "# axolotl", "axolotl version: `0.1`", "```yaml",
    "```", "lora_r: 8", "micro_batch_size: {}", "adapter: [lora]", "val_set_size: .nan",
    "### Training hyperparameters", "- learning_rate: x", "- train_batch_size: 1e999",
    "- num_epochs: inf", "- optimizer: ", "- training_steps: nan", "### Training results",
    "| Step | Epoch | Training Loss |", "|:-:|:-:|", "| inf | nan | 1 |", "| 10 | 1e-320 | x | y |",
    "### Framework versions", "- TRL: 0.1", "", "|", "| 1 |",
]), max_size=20))  # fmt: skip
def test_any_card(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("any")
    (folder / "README.md").write_text("generated_from_trainer\n" * (not lines) + "\n".join(lines))
    read_all(folder)
    read_all(folder / "README.md")


@several
@given(st.text(max_size=300) | st.lists(st.sampled_from([
    "Iter 1: Train loss 1.2.3, Learning Rate nan", "Iter 99: Val loss inf, x", "iter   train_loss",
    "  10   nan ▼", "Step 1 | loss:--1 lr:x grad_norm:1e999", "Step 2 | ", "\r",
    "{'loss': '1.2.3'}",
    "{'loss': None, 'epoch': x}", "100%|##| 1/0 [00:00", "  5%|# | 3/10 [0", "{'eval_loss': nan}",
])).map("\n".join))  # fmt: skip
def test_any_text(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("any")
    for name in ("a.txt", "output.log", "logs/log_1.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", errors="replace")
        read_all(folder / name)
    read_all(folder)
