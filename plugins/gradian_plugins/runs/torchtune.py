"""Runs of torchtune: its YAML config of components, and the text log of its DiskLogger."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradian_core.runs.artifact import (
    AdapterInfo,
    RunArtifact,
    TrainerLog,
    TrainingConfig,
    Value,
)
from gradian_core.runs.evidence import settle

from ._files import Remarks, files_of, finite, head, integer, number, text_of
from ._optimisers import optimiser
from ._peft import described_adapter
from ._tool_config import asked, config_of, defaults, flag, has_config
from ._yaml import YamlConfig

__all__ = ["TorchtuneRunReader"]

_PREFERRED = ("torchtune_config.yaml",)
_MOST_TEXT = 64 << 20
_LINE = re.compile(r"^Step (\d{1,12}) \| ?(\S.*)$")
_PAIR = re.compile(r"([A-Za-z_]\w{0,60}):([-+.\w]{1,40})")
_RENAMED = {"lr": "learning_rate", "val_loss": "eval_loss"}
_KEPT = frozenset({"loss", "learning_rate", "grad_norm", "eval_loss"})

_NAMES: Mapping[str, str] = {
    "batch_size": "per_device_train_batch_size",
    "chat_template": "chat_template",
    "clip_grad_norm": "max_grad_norm",
    "dataset.packed": "packing",
    "dataset.train_on_input": "train_on_prompt",
    "enable_activation_checkpointing": "gradient_checkpointing",
    "epochs": "num_train_epochs",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "log_every_n_steps": "logging_steps",
    "lr_scheduler.num_warmup_steps": "warmup_steps",
    "optimizer.lr": "learning_rate",
    "optimizer.weight_decay": "weight_decay",
    "run_val_every_n_steps": "eval_steps",
    "seed": "seed",
    "tokenizer.max_seq_len": "max_seq_length",
}
_OFF: Mapping[str, tuple[Any, str]] = {
    "max_grad_norm": (0.0, "clip_grad_norm"),
    "max_seq_length": (None, "tokenizer.max_seq_len"),
    "seed": (None, "seed"),
}
"""What null means, which is also what it means that the key is absent."""
_DEFAULTS: Mapping[str, Any] = {
    "gradient_accumulation_steps": 1,
    "logging_nan_inf_filter": (False, "losses are logged as they are"),
    "max_steps": (-1, "no cap"),
    "overlong_rows": ("cut_right", "rows are cut, their end token is kept"),
    "packing": False,
    "stage": "sft",
    "warmup_steps": (0, "no schedule"),
}
_ATTENTION = {"output_proj": "o_proj"}
_MLP = ("gate_proj", "up_proj", "down_proj")
_SCHEDULES = ("constant", "cosine", "linear", "polynomial")
_STAGES = ("dpo", "ppo", "grpo")
_DTYPES = {"bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "float16": "fp16"}


class TorchtuneRunReader:
    """Reads torchtune's config and log."""

    def can_read(self, path: Path) -> bool:
        """Whether there is a config of torchtune's components, or its text log."""
        if path.is_file() and path.suffix.lower() in (".txt", ".log"):
            return _is_log(path)
        return bool(has_config(path, _is_torchtune) or _logs_of(path))

    def read(self, path: Path) -> RunArtifact:
        """Read config and log.

        Raises
        ------
        InputError
            If all there is is damaged.
        """
        remarks = Remarks()
        config = config_of(path, _is_torchtune, remarks, _PREFERRED)
        log = _log_of(path, remarks)
        remarks.insist(config or log, path)
        adapter = _adapter(config, path) if config else None
        if config is not None and adapter is None:
            text = (
                f"{config.where('model')}: the model has no LoRA layers, so all of it is trained."
            )
            remarks.refuse("not_a_lora_run", text)
        values = _values(config, adapter is not None, remarks) if config else {}
        return RunArtifact(
            path=path,
            reader="torchtune",
            training=TrainingConfig(tool="torchtune", values=values) if config or log else None,
            adapter=adapter,
            log=log,
            notes=tuple(remarks.notes),
            refusals=remarks.refusals,
        )


def _is_torchtune(values: Mapping[str, Any]) -> bool:
    return any(
        "torchtune." in str(section.get("_component_"))
        for section in values.values()
        if isinstance(section, dict)
    )


def _component(config: YamlConfig, section: str) -> str:
    content = config.values.get(section)
    return str(content.get("_component_") or "") if isinstance(content, dict) else ""


def _values(config: YamlConfig, lora: bool, remarks: Remarks) -> dict[str, Value]:
    own = [_nulls(config), asked(config, _NAMES), _derived(config, lora)]
    values, _ = settle([*own, defaults("torchtune", _DEFAULTS)])
    stage = next((s for s in _STAGES if s in _component(config, "loss").lower()), None)
    if stage is not None:
        where = config.where("loss", "_component_")
        values["stage"] = Value(stage, where)
        remarks.refuse("not_sft", f"{where}: this run is {stage.upper()}, not supervised.")
    return values


def _nulls(config: YamlConfig) -> dict[str, Value]:
    """Return the settings that are off: in torchtune an empty key is off, and so is none."""
    values: dict[str, Value] = {}
    for name, (off, key) in _OFF.items():
        section, _, inner = key.partition(".")
        content = config.values.get(section)
        path = (section, inner) if inner else (section,)
        value = content.get(inner) if inner and isinstance(content, dict) else content
        if path in config.lines and value is None:
            values[name] = Value(off, f"{config.where(*path)} (null)")
        elif path not in config.lines:
            values[name] = Value(off, f"default of torchtune ({key} null)", "default")
    return values


def _derived(config: YamlConfig, lora: bool) -> dict[str, Value]:
    """Return settings that take more than one key, or whose meaning is torchtune's own."""
    values = config.values
    derived: dict[str, Value] = {}
    if name := _component(config, "optimizer"):
        derived["optim"] = Value(optimiser(name), config.where("optimizer", "_component_"))
    scheduler = _component(config, "lr_scheduler")
    kind = next((word for word in _SCHEDULES if word in scheduler.lower()), None)
    if kind is not None:
        derived["lr_scheduler_type"] = Value(kind, config.where("lr_scheduler", "_component_"))
    elif not scheduler:
        derived["lr_scheduler_type"] = Value("constant", "default of torchtune", "default")
    for name in ("bf16", "fp16"):
        dtype = values.get("dtype")
        derived[name] = Value(_DTYPES.get(str(dtype)) == name, config.where("dtype"))
    cap, epochs = finite(values.get("max_steps_per_epoch")), finite(values.get("epochs"))
    if cap and epochs:
        derived["max_steps"] = Value(int(cap * epochs), config.where("max_steps_per_epoch"))
    derived["has_eval_set"] = Value(
        bool(values.get("dataset_val") or values.get("run_val_every_n_steps")),
        config.where("dataset_val") if "dataset_val" in values else "default of torchtune",
        "asked" if "dataset_val" in values else "default",
    )
    derived["finetuning_type"] = Value(
        "lora" if lora else "full", config.where("model", "_component_")
    )
    data = _component(config, "dataset")
    if data:
        derived["datasets"] = Value(values["dataset"], config.where("dataset"))
        on_prompt = "alpaca" in data or "completion" in data
        origin = f"default of {data}"
        derived["train_on_prompt"] = Value(on_prompt, origin, "default")
    section = values.get("dataset")
    if isinstance(section, dict) and flag(section.get("packed")) is True:
        where = f"{config.where('dataset', 'packed')} (torchtune masks by row)"
        derived["packing_isolated"] = Value(True, where)
    return derived | _base(config)


def _base(config: YamlConfig) -> dict[str, Value]:
    section = config.values.get("checkpointer")
    folder = section.get("checkpoint_dir") if isinstance(section, dict) else None
    if not isinstance(folder, str) or "${" in folder:
        return {}
    name = folder.rstrip("/").rsplit("/", 1)[-1]
    return {"base_model": Value(name, config.where("checkpointer", "checkpoint_dir"))}


def _adapter(config: YamlConfig, path: Path) -> AdapterInfo | None:
    model = config.values.get("model")
    component = _component(config, "model")
    if not isinstance(model, dict) or not ("lora" in component or "lora_rank" in model):
        return None
    names = model.get("lora_attn_modules")
    targets = [_ATTENTION.get(str(n), str(n)) for n in names] if isinstance(names, list) else []
    if flag(model.get("apply_lora_to_mlp")) is True:
        targets += _MLP
    if flag(model.get("apply_lora_to_output")) is True:
        targets.append("lm_head")
    raw = {
        "r": integer(number(model.get("lora_rank"))) or 8,
        "lora_alpha": number(model.get("lora_alpha")) or 16.0,
        "lora_dropout": number(model.get("lora_dropout")) or 0.0,
        "target_modules": targets,
        "use_rslora": False,
        "use_dora": flag(model.get("use_dora")) is True or "dora" in component,
    }
    base = _base(config).get("base_model")
    where = config.where("model", "lora_rank") if "lora_rank" in model else config.where("model")
    return described_adapter(path, raw, where, base.value if base else None)


# --- the log


def _is_log(path: Path) -> bool:
    return any(_LINE.match(line) for line in head(path).splitlines()[:200])


def _logs_of(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix.lower() in (".txt", ".log") and _is_log(path) else []
    found = [*files_of(path, "logs/log_*.txt"), *files_of(path, "log_*.txt")]
    # they are named for the second in which they were begun
    return sorted((f for f in found if _is_log(f)), key=lambda f: (len(f.name), f.name))


def _log_of(path: Path, remarks: Remarks) -> TrainerLog | None:
    files = _logs_of(path)
    if not files:
        return None
    if len(files) > 1:
        remarks.note(f"Of {len(files)} logs the last one, {files[-1].name}, was read.")
    text = remarks.attempt(files[-1], lambda p: text_of(p, _MOST_TEXT))
    records: list[dict[str, Any]] = []
    for match in map(_LINE.match, (text or "").split("\n")):
        if match is None:
            continue
        entry = {_RENAMED.get(k, k): number(v) for k, v in _PAIR.findall(match[2])}
        entry = {k: v for k, v in entry.items() if k in _KEPT and v is not None}
        if entry:
            records.append({"step": int(match[1]), **entry})
    if not records:
        return None
    return TrainerLog(
        records=tuple(records), global_step=records[-1]["step"], source=files[-1].name
    )
