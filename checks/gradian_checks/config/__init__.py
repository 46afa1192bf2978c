"""Checks of a run's settings and its adapter."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import CheckSpec

__all__ = ["CORE", "FURTHER", "gradian_checks"]

CORE = (
    ("attention_only_targets", "target_modules covers attention only"),
    ("base_model_mismatch", "Adapter trained on a different base model"),
    ("capacity_vs_data", "Adapter capacity large relative to the data"),
    ("fp16_precision", "fp16 rather than bf16"),
    ("grad_clip_disabled", "Gradient clipping disabled"),
    ("high_lora_dropout", "High LoRA dropout on a small dataset"),
    ("lr_too_high", "Learning rate too high for LoRA"),
    ("lr_too_low", "Learning rate too low to learn"),
    ("max_seq_length_vs_data", "max_seq_length shorter than the data needs"),
    ("no_eval_set", "No eval set configured"),
    ("no_warmup", "No warmup with a high learning rate"),
    ("overtraining", "Too many epochs for the dataset size"),
    ("packing_with_completion_loss", "Packing combined with completion-only loss"),
    ("pad_equals_eos", "pad_token is the eos_token"),
    ("seed_unset", "No seed recorded"),
    ("small_effective_batch", "Effective batch size of 1-2 with a high LR"),
    ("undertrained", "Too few optimizer steps"),
)
"""``(name, summary)`` of the checks that the reference documentation lists."""

FURTHER = (
    ("adapter_weights_dead", "Adapter weights that do nothing, or are not numbers"),
    ("ignored_config_key", "Config keys that the tool does not know and ignored"),
    ("known_bad_versions", "Library versions with a known training bug"),
    ("large_effective_batch", "Effective batch size too large for LoRA"),
    ("not_a_lora_run", "Not a LoRA run"),
    ("packing_contamination", "Packed rows that attend to each other"),
    ("requested_vs_actual", "The run did not do what its config asks for"),
    ("target_modules_unmatched", "target_modules that the model does not have"),
    ("tied_embeddings_trained", "Tied embeddings that are trained apart"),
    ("warmup_exceeds_training", "Warmup that takes up most of the training"),
)
"""``(name, summary)`` of the checks beyond them."""


@hookimpl
def gradian_checks() -> Iterator[CheckSpec]:
    """Declare the checks, those of the core list first."""
    for name, summary in (*CORE, *FURTHER):
        yield CheckSpec(
            name=f"config.{name}",
            summary=summary,
            factory=f"gradian_checks.config.{name}:{name}",
        )
