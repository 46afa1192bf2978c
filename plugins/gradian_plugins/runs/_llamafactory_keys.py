"""LLaMA-Factory's keys: what they are called elsewhere, and their defaults.

It refuses a key that it does not know, so that none is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["DEFAULTS", "NAMES"]

NAMES: Mapping[str, str] = {
    **{
        name: name
        for name in (
            "adam_beta1",
            "adam_beta2",
            "adam_epsilon",
            "bf16",
            "data_seed",
            "deepspeed",
            "eval_on_start",
            "eval_steps",
            "eval_strategy",
            "finetuning_type",
            "fp16",
            "gradient_accumulation_steps",
            "gradient_checkpointing",
            "group_by_length",
            "label_smoothing_factor",
            "learning_rate",
            "load_best_model_at_end",
            "logging_nan_inf_filter",
            "logging_steps",
            "loraplus_lr_ratio",
            "lr_scheduler_kwargs",
            "lr_scheduler_type",
            "mask_history",
            "max_grad_norm",
            "max_samples",
            "max_steps",
            "neftune_noise_alpha",
            "num_train_epochs",
            "optim",
            "packing",
            "per_device_eval_batch_size",
            "per_device_train_batch_size",
            "save_steps",
            "save_strategy",
            "seed",
            "stage",
            "tf32",
            "train_on_prompt",
            "warmup_ratio",
            "warmup_steps",
            "weight_decay",
        )
    },
    "cutoff_len": "max_seq_length",
    "dataset": "datasets",
    "evaluation_strategy": "eval_strategy",
    "flash_attn": "attn_implementation",
    "model_name_or_path": "base_model",
    "template": "chat_template",
    "val_size": "val_set_size",
}
"""LLaMA-Factory's key -> the normalised name."""

_TRAINER = "that of transformers"
DEFAULTS: Mapping[str, Any] = {
    "bf16": (False, _TRAINER),
    "finetuning_type": "lora",
    "fp16": (False, _TRAINER),
    "gradient_accumulation_steps": (1, _TRAINER),
    "learning_rate": (5e-5, _TRAINER),
    "load_in_4bit": False,
    "load_in_8bit": False,
    "logging_nan_inf_filter": (True, _TRAINER),
    "lr_scheduler_type": ("linear", _TRAINER),
    "mask_history": False,
    "max_grad_norm": (1.0, _TRAINER),
    "max_seq_length": (2048, "cutoff_len 2048; 1024 before 0.9.2"),
    "max_steps": (-1, "no cap"),
    "num_train_epochs": (3.0, _TRAINER),
    "optim": ("adamw_torch", _TRAINER),
    "overlong_rows": ("cut_both", "prompt and answer are cut in proportion"),
    "packing": False,
    "per_device_train_batch_size": (8, _TRAINER),
    "seed": (42, _TRAINER),
    "stage": "sft",
    "train_on_prompt": False,
    "warmup_ratio": (0.0, _TRAINER),
    "warmup_steps": (0, _TRAINER),
    "weight_decay": (0.0, _TRAINER),
}
"""What LLaMA-Factory takes where a key is absent."""
