"""The normalised settings: their names, what they mean and what kind of value they hold.

Names are transformers' where it has one. A reader translates its tool's keys into them with
:func:`coerce`, which makes numbers of numbers that were written as text (PyYAML reads ``2e-4``
as text, and every tool makes a float of it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["SETTINGS", "Setting", "coerce"]

Kind = Literal["number", "integer", "flag", "text", "any"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A normalised setting.

    Parameters
    ----------
    kind
        What :func:`coerce` makes of it.
    meaning
        One line for people.
    """

    kind: Kind
    meaning: str


def _table(kind: Kind, **meanings: str) -> dict[str, Setting]:
    return {name: Setting(kind, meaning) for name, meaning in meanings.items()}


SETTINGS: dict[str, Setting] = {
    # --- optimisation
    **_table(
        "number",
        learning_rate="peak learning rate",
        num_train_epochs="epochs asked for; max_steps wins over it",
        warmup_steps="optimiser steps of warmup; below 1 a share of all steps",
        warmup_ratio="warmup as a share of all steps; a positive warmup_steps wins over it",
        max_grad_norm="gradients are clipped to this norm; 0 means off",
        weight_decay="decoupled weight decay",
        adam_beta1="Adam's first beta",
        adam_beta2="Adam's second beta",
        adam_epsilon="Adam's epsilon",
        label_smoothing_factor="label smoothing",
        neftune_noise_alpha="NEFTune noise on embeddings; None means off",
        loraplus_lr_ratio="LoRA+: rate of B over rate of A; None means the same",
    ),
    **_table(
        "integer",
        per_device_train_batch_size="rows of one forward pass on one device",
        per_device_eval_batch_size="the same in evaluation",
        gradient_accumulation_steps="forward passes that add up to one optimiser step",
        world_size="devices that train together",
        total_train_batch_size="rows of one optimiser step over all devices",
        max_steps="cap on optimiser steps, which wins over epochs; -1 means none",
        seed="random seed; None means a new one each time",
        data_seed="seed of the order of rows",
    ),
    **_table(
        "text",
        lr_scheduler_type="schedule, as transformers names it",
        optim="optimiser, as transformers names it",
        loss_type="form of the loss",
    ),
    **_table("any", lr_scheduler_kwargs="further options of the schedule"),
    **_table("flag", group_by_length="rows of like length share a batch"),
    # --- precision and memory
    **_table(
        "any",
        bf16="bfloat16 autocast: true, false, 'auto' or 'full'",
        fp16="float16 autocast: true, false or 'auto'",
        tf32="TensorFloat-32",
    ),
    **_table(
        "flag",
        load_in_4bit="base model quantised to four bits",
        load_in_8bit="base model quantised to eight bits",
        gradient_checkpointing="activations are computed again in the backward pass",
    ),
    **_table("any", deepspeed="DeepSpeed's config or its file; it may clip gradients by itself"),
    **_table("text", device="graphics card, as its maker names it"),
    # --- logging, evaluation, saving
    **_table(
        "number",
        logging_steps="steps from one log line to the next; below 1 a share of all steps",
        eval_steps="steps from one evaluation to the next; below 1 a share of all steps",
        save_steps="steps from one checkpoint to the next; below 1 a share of all steps",
    ),
    **_table("integer", early_stopping_patience="evaluations without gain before stopping"),
    **_table(
        "text",
        eval_strategy="when evaluation happens: no, steps, epoch",
        save_strategy="when checkpoints are written",
        logging_strategy="when log lines are written",
    ),
    **_table(
        "flag",
        has_eval_set="there is data to evaluate on during training",
        eval_on_start="evaluation before the first step",
        logging_first_step="the first step is logged",
        logging_nan_inf_filter="a NaN loss is hidden from the log",
        load_best_model_at_end="the best checkpoint is what is kept",
    ),
    # --- length and packing
    **_table(
        "integer",
        max_seq_length="longest row in tokens; None means no limit",
    ),
    **_table(
        "text",
        overlong_rows="what happens to longer rows: cut_right, cut_left, cut_both, drop, split",
        packing_strategy="how rows are packed: bfd, bfd_split, wrapped, …",
        attn_implementation="attention kernel",
    ),
    **_table(
        "flag",
        packing="several rows share one sequence",
        packing_isolated="packed rows do not see each other",
        padding_free="batches are flattened instead of padded",
        pad_to_max_length="every row is padded to max_seq_length",
    ),
    # --- what the loss is taken on
    **_table(
        "flag",
        completion_only_loss="loss on completions only; None lets trl decide by the row shape",
        assistant_only_loss="loss on assistant turns only",
        train_on_prompt="loss on prompts as well",
        mask_history="loss on the last answer only",
    ),
    **_table(
        "any",
        roles_to_train="roles whose turns have loss",
        train_on_eos="which end tokens have loss: all, turn, last, none",
    ),
    **_table(
        "text",
        collator="class that makes batches",
        stage="what is trained: sft, pt, dpo, kto, orpo, grpo, rm, ppo, …",
    ),
    # --- model, template, data
    **_table(
        "text",
        base_model="base model, as the run names it",
        chat_template="name or source of the chat template",
        pad_token="padding token that the config asks for",  # noqa: S106 - a token of text
        eos_token="end token that the config asks for",  # noqa: S106 - a token of text
        bos_token="first token that the config asks for",  # noqa: S106 - a token of text
    ),
    **_table(
        "any",
        datasets="data sets as the config names them",
        deepspeed="DeepSpeed's config, which may clip and accumulate by rules of its own",
    ),
    **_table("flag", tie_word_embeddings="the base model's input and output embeddings are one"),
    **_table("integer", max_samples="cap on rows of each data set"),
    **_table("number", val_set_size="share or number of rows that are held out"),
    # --- adapter, as asked for; what exists is in AdapterInfo
    **_table(
        "text",
        finetuning_type="lora, dora, full, freeze, oft, or another method",
    ),
    **_table("integer", num_layers="only the last so many layers are adapted; -1 means all"),
    # --- record of the end
    **_table("number", train_loss="mean training loss over the whole run, as recorded at its end"),
}
"""Every normalised name."""

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


def coerce(name: str, value: Any) -> Any:
    """Return a value as its setting wants it; what does not fit is returned as it is.

    None stays None. Numbers may be text, and flags may be words.
    """
    setting = SETTINGS.get(name)
    if setting is None or value is None:
        return value
    if setting.kind in ("number", "integer"):
        return _number(value, whole=setting.kind == "integer")
    if setting.kind == "flag":
        return _flag(value)
    if setting.kind == "any" and isinstance(value, str):
        return _flag(value)
    return value


def _number(value: Any, *, whole: bool) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            value = int(value) if value.strip().isdecimal() else float(value)
        except ValueError:
            return value
    if isinstance(value, float) and whole and math.isfinite(value) and value == int(value):
        return int(value)
    return value


def _flag(value: Any) -> Any:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
    return value
