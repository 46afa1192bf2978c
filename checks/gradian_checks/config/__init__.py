"""Checks of a run's settings and its adapter."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import CheckSpec

__all__ = ["CORE", "FURTHER", "gradian_checks"]

CORE = (
    ("attention_only_targets", "target_modules covers attention only", ("adapter",)),
    ("base_model_mismatch", "Adapter trained on a different base model", ("adapter",)),
    ("capacity_vs_data", "Adapter capacity large relative to the data", ("adapter", "tokens")),
    ("fp16_precision", "fp16 rather than bf16", ("training",)),
    ("grad_clip_disabled", "Gradient clipping disabled", ("training",)),
    ("high_lora_dropout", "High LoRA dropout on a small dataset", ("adapter",)),
    ("lr_too_high", "Learning rate too high for LoRA", ("training",)),
    ("lr_too_low", "Learning rate too low to learn", ("training",)),
    ("max_seq_length_vs_data", "max_seq_length shorter than the data needs", ()),
    ("no_eval_set", "No eval set configured", ("training",)),
    ("no_warmup", "No warmup with a high learning rate", ("training",)),
    ("overtraining", "Too many epochs for the dataset size", ("training",)),
    ("packing_with_completion_loss", "Packing combined with completion-only loss", ("training",)),
    ("pad_equals_eos", "pad_token is the eos_token", ("training",)),
    ("seed_unset", "No seed recorded", ("training",)),
    ("small_effective_batch", "Effective batch size of 1-2 with a high LR", ("training",)),
    ("undertrained", "Too few optimizer steps", ("training",)),
)
"""``(name, summary, needs)`` of the checks that the reference documentation lists."""

FURTHER = (
    ("adapter_weights_dead", "Adapter weights that do nothing, or are not numbers", ("adapter",)),
    ("ignored_config_key", "Config keys that the tool does not know and ignored", ("training",)),
    ("known_bad_versions", "Library versions with a known training bug", ("training",)),
    ("large_effective_batch", "Effective batch size too large for LoRA", ("training",)),
    ("not_a_lora_run", "Not a LoRA run", ()),
    ("packing_contamination", "Packed rows that attend to each other", ("training",)),
    ("requested_vs_actual", "The run did not do what its config asks for", ("training",)),
    ("target_modules_unmatched", "target_modules that the model does not have", ("adapter",)),
    ("tied_embeddings_trained", "Tied embeddings that are trained apart", ("adapter",)),
    ("warmup_exceeds_training", "Warmup that takes up most of the training", ("training",)),
)
"""``(name, summary, needs)`` of the checks beyond them."""


@hookimpl
def gradian_checks() -> Iterator[CheckSpec]:
    """Declare the checks, those of the core list first."""
    for declared in (CORE, FURTHER):
        for name, summary, needs in declared:
            yield CheckSpec(
                name=f"config.{name}",
                summary=summary,
                factory=f"gradian_checks.config.{name}:{name}",
                needs=needs,
                core=declared is CORE,
            )
