"""axolotl's keys: what they are called elsewhere, their defaults, and those it does not know."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from typing import Any

from gradian_core.runs.artifact import UnknownKey, Value
from gradian_core.runs.evidence import found
from gradian_core.runs.settings import SETTINGS

from ._fields import fields
from ._yaml import YamlConfig

__all__ = ["DEFAULTS", "NAMES", "requested", "unknown_keys"]

NAMES: Mapping[str, str] = {
    "adam_beta1": "adam_beta1",
    "adam_beta2": "adam_beta2",
    "adam_epsilon": "adam_epsilon",
    "attn_implementation": "attn_implementation",
    "base_model": "base_model",
    "batch_size": "total_train_batch_size",
    "bf16": "bf16",
    "bfloat16": "bf16",
    "chat_template": "chat_template",
    "datasets": "datasets",
    "deepspeed": "deepspeed",
    "early_stopping_patience": "early_stopping_patience",
    "eval_batch_size": "per_device_eval_batch_size",
    "eval_steps": "eval_steps",
    "eval_strategy": "eval_strategy",
    "evaluation_strategy": "eval_strategy",
    "fp16": "fp16",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "gradient_checkpointing": "gradient_checkpointing",
    "group_by_length": "group_by_length",
    "learning_rate": "learning_rate",
    "load_in_4bit": "load_in_4bit",
    "load_in_8bit": "load_in_8bit",
    "logging_steps": "logging_steps",
    "loraplus_lr_ratio": "loraplus_lr_ratio",
    "lr_scheduler": "lr_scheduler_type",
    "lr_scheduler_kwargs": "lr_scheduler_kwargs",
    "max_grad_norm": "max_grad_norm",
    "max_steps": "max_steps",
    "micro_batch_size": "per_device_train_batch_size",
    "neftune_noise_alpha": "neftune_noise_alpha",
    "noisy_embedding_alpha": "neftune_noise_alpha",
    "num_epochs": "num_train_epochs",
    "optimizer": "optim",
    "pad_to_sequence_len": "pad_to_max_length",
    "roles_to_train": "roles_to_train",
    "sample_packing": "packing",
    "save_steps": "save_steps",
    "save_strategy": "save_strategy",
    "seed": "seed",
    "sequence_len": "max_seq_length",
    "tf32": "tf32",
    "train_on_eos": "train_on_eos",
    "train_on_inputs": "train_on_prompt",
    "val_set_size": "val_set_size",
    "weight_decay": "weight_decay",
    "world_size": "world_size",
}
"""axolotl's key -> the normalised name."""

DEFAULTS: Mapping[str, Any] = {
    "bf16": "auto",
    "fp16": False,
    "gradient_accumulation_steps": 1,
    "gradient_checkpointing": False,
    "load_in_4bit": False,
    "load_in_8bit": False,
    "logging_nan_inf_filter": (True, "that of transformers"),
    "lr_scheduler_type": "cosine",
    "max_grad_norm": (1.0, "that of transformers"),
    "max_seq_length": 512,
    "max_steps": (-1, "no cap"),
    "num_train_epochs": (1.0, "num_epochs 1.0"),
    "optim": "adamw_torch_fused",
    "overlong_rows": ("drop", "longer rows are dropped"),
    "packing": False,
    "per_device_train_batch_size": (1, "micro_batch_size 1"),
    "roles_to_train": (["assistant"], "roles_to_train"),
    "seed": (42, "that of transformers"),
    "stage": "sft",
    "train_on_eos": "turn",
    "train_on_prompt": (False, "train_on_inputs false"),
    "weight_decay": 0.0,
}
"""What axolotl takes where a key is absent; warmup has a rule of its own."""

_MEANT = {
    "accumulation_steps": "gradient_accumulation_steps",
    "batch_size_per_device": "micro_batch_size",
    "epochs": "num_epochs",
    "evaluation_steps": "eval_steps",
    "lora_rank": "lora_r",
    "lr": "learning_rate",
    "max_length": "sequence_len",
    "max_seq_len": "sequence_len",
    "max_seq_length": "sequence_len",
    "model_name_or_path": "base_model",
    "num_train_epochs": "num_epochs",
    "optim": "optimizer",
    "packing": "sample_packing",
    "per_device_eval_batch_size": "eval_batch_size",
    "per_device_train_batch_size": "micro_batch_size",
    "peft_type": "adapter",
    "r": "lora_r",
    "target_modules": "lora_target_modules",
    "train_on_prompt": "train_on_inputs",
    "lr_scheduler_type": "lr_scheduler",
}
"""Keys of other tools -> axolotl's."""


@cache
def _known() -> frozenset[str]:
    table = fields()["axolotl"]
    return frozenset((*table["top"], *table["aliases"], *table["retired"]))


def unknown_keys(config: YamlConfig) -> tuple[UnknownKey, ...]:
    """Return the keys that axolotl's schema does not have, which it ignores without a word.

    An empty key changes nothing and is passed over; so are keys of plugins that are listed.
    """
    prefixes = tuple(fields()["axolotl"]["plugin_prefixes"]) if config.values.get("plugins") else ()
    unknown = [
        UnknownKey(name=key, value=value, source=config.where(key), meant=_meant(key))
        for key, value in config.values.items()
        if value is not None and key not in _known() and not key.startswith(prefixes or "\0")
    ]
    for section in ("datasets", "test_datasets"):
        unknown += _unknown_in_datasets(config, section)
    return tuple(unknown)


def _unknown_in_datasets(config: YamlConfig, section: str) -> list[UnknownKey]:
    listed = config.values.get(section)
    known = frozenset(fields()["axolotl"]["dataset"])
    # preference data sets and steps of reward models have keys of their own
    if not isinstance(listed, list) or config.values.get("rl") or config.values.get("reward_model"):
        return []
    return [
        UnknownKey(
            name=f"{section}.{position}.{key}",
            value=value,
            source=config.where(section, position, key),
            meant=_suggestion(key, known),
        )
        for position, entry in enumerate(listed[:100])
        if isinstance(entry, dict)
        for key, value in entry.items()
        if value is not None and key not in known
    ]


def _meant(key: str) -> str | None:
    return _MEANT.get(key) or _suggestion(key, _known())


def _suggestion(key: str, known: frozenset[str]) -> str | None:
    close = difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.8)
    return close[0] if close else None


def requested(config: YamlConfig) -> dict[str, Value]:
    """Return what was asked for under a key that axolotl does not know but others do."""
    values: dict[str, Value] = {}
    for key, value in config.values.items():
        if key in SETTINGS and key not in _known() and value is not None:
            values |= found({key: value}, f"{config.where(key)} (unknown to axolotl)", "asked")
    return values
