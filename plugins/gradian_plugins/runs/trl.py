"""Configs of ``trl sft`` and of recipes like the alignment handbook's.

They name the arguments of transformers' Trainer, of trl and of its model options in one file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradian_core.runs.artifact import AdapterInfo, RunArtifact, TrainingConfig, Value
from gradian_core.runs.evidence import settle
from gradian_core.runs.settings import SETTINGS

from ._files import Remarks, integer, number
from ._peft import described_adapter
from ._tool_config import asked, config_of, defaults, flag, has_config
from ._yaml import YamlConfig

__all__ = ["TrlRunReader"]

_OWN = frozenset(
    {
        "dataset_mixer",
        "dataset_name",
        "dataset_text_field",
        "dataset_train_split",
        "lora_target_modules",
        "max_length",
        "max_seq_length",
        "use_peft",
    }
)
_OTHERS = frozenset({"finetuning_type", "stage", "cutoff_len", "base_model", "lora_parameters"})
_PREFERENCE = {"beta": "dpo", "max_prompt_length": "dpo", "num_generations": "grpo"}
_NAMES: Mapping[str, str] = {
    **{name: name for name in SETTINGS if name not in ("base_model", "datasets", "has_eval_set")},
    "dataset_name": "datasets",
    "evaluation_strategy": "eval_strategy",
    "max_length": "max_seq_length",
    "model_name_or_path": "base_model",
}
_TRAINER = "that of transformers"
_DEFAULTS: Mapping[str, Any] = {
    "gradient_accumulation_steps": (1, _TRAINER),
    "learning_rate": 2e-5,
    "load_in_4bit": False,
    "logging_nan_inf_filter": (True, _TRAINER),
    "lr_scheduler_type": ("linear", _TRAINER),
    "max_grad_norm": (1.0, _TRAINER),
    "max_seq_length": 1024,
    "max_steps": (-1, "no cap"),
    "num_train_epochs": (3.0, _TRAINER),
    "overlong_rows": ("cut_right", "rows are cut at the end"),
    "packing": False,
    "per_device_train_batch_size": (8, _TRAINER),
    "seed": (42, _TRAINER),
    "stage": "sft",
    "warmup_ratio": (0.0, _TRAINER),
    "warmup_steps": (0, _TRAINER),
    "weight_decay": (0.0, _TRAINER),
}


class TrlRunReader:
    """Reads configs of trl's command line."""

    def can_read(self, path: Path) -> bool:
        """Whether there is such a config."""
        return has_config(path, _is_trl)

    def read(self, path: Path) -> RunArtifact:
        """Read the config.

        Raises
        ------
        InputError
            If it is damaged.
        """
        remarks = Remarks()
        config = config_of(path, _is_trl, remarks)
        remarks.insist(config, path)
        adapter = _adapter(config, path) if config else None
        values = _values(config, adapter, remarks) if config else {}
        return RunArtifact(
            path=path,
            reader="trl",
            training=TrainingConfig(tool="trl", values=values) if config else None,
            adapter=adapter,
            notes=tuple(remarks.notes),
            refusals=remarks.refusals,
        )


def _is_trl(values: Mapping[str, Any]) -> bool:
    return (
        "model_name_or_path" in values
        and not _OWN.isdisjoint(values)
        and _OTHERS.isdisjoint(values)
    )


def _values(config: YamlConfig, adapter: AdapterInfo | None, remarks: Remarks) -> dict[str, Value]:
    values, _ = settle(
        [_derived(config, adapter), asked(config, _NAMES), defaults("trl", _DEFAULTS)]
    )
    if adapter is None:
        text = f"{config.name} has no use_peft: trl then trains the whole model."
        remarks.refuse("not_a_lora_run", text)
    stage = values["stage"]
    if stage.value != "sft":
        text = f"{stage.source}: this run is {str(stage.value).upper()}, not supervised."
        remarks.refuse("not_sft", text)
    return values


def _derived(config: YamlConfig, adapter: AdapterInfo | None) -> dict[str, Value]:
    values = config.values
    derived: dict[str, Value] = {}
    key = "use_peft" if "use_peft" in values else "model_name_or_path"
    derived["finetuning_type"] = Value("lora" if adapter else "full", config.where(key))
    strategy = values.get("eval_strategy", values.get("evaluation_strategy"))
    if strategy is not None:
        # YAML reads a bare no as false
        word = "no" if strategy is False else str(strategy)
        where = config.where(
            "eval_strategy" if "eval_strategy" in values else "evaluation_strategy"
        )
        derived["eval_strategy"] = Value(word, where)
        derived["has_eval_set"] = Value(word != "no", where)
    else:
        derived["has_eval_set"] = Value(False, "default of trl (eval_strategy no)", "default")
    for name, stage in _PREFERENCE.items():
        if values.get(name) is not None:
            derived.setdefault("stage", Value(stage, f"{config.where(name)} ({name})"))
    return derived


def _adapter(config: YamlConfig, path: Path) -> AdapterInfo | None:
    values = config.values
    if flag(values.get("use_peft")) is not True:
        return None
    targets = values.get("lora_target_modules")
    if isinstance(targets, str) and targets != "all-linear":
        targets = [targets]
    dropout = number(values.get("lora_dropout"))
    raw = {
        "r": integer(number(values.get("lora_r"))) or 16,
        "lora_alpha": number(values.get("lora_alpha")) or 32.0,
        "lora_dropout": 0.05 if dropout is None else dropout,
        "target_modules": targets[0] if targets == ["all-linear"] else targets,
        "modules_to_save": values.get("lora_modules_to_save"),
        "use_rslora": flag(values.get("use_rslora")) is True,
        "use_dora": flag(values.get("use_dora")) is True,
    }
    where = config.where("lora_r" if "lora_r" in values else "use_peft")
    return described_adapter(path, raw, where, values.get("model_name_or_path"))
