"""The settings of a fine-tune that is to be repeated, and where each of them comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from gradian_core.config.models import TrainSection
from gradian_core.runs.artifact import AdapterInfo, RunArtifact, TrainerLog

__all__ = ["repeated_settings", "total_steps"]

_OF_THE_RUN = (
    "learning_rate", "num_train_epochs", "per_device_train_batch_size",
    "gradient_accumulation_steps", "warmup_ratio", "lr_scheduler_type", "max_seq_length",
    "max_grad_norm", "weight_decay",
)  # fmt: skip
_OF_THE_ADAPTER = ("r", "lora_alpha", "lora_dropout", "target_modules")


_Take = Callable[[str, Any, str], None]


def total_steps(rows: int, settings: TrainSection, *, epochs: float | None = None) -> int:
    """Return the optimiser steps of a run over ``rows`` rows, as transformers counts them.

    Parameters
    ----------
    rows
        Rows of an epoch.
    settings
        Section ``train``.
    epochs
        In place of its ``num_train_epochs``.
    """
    batches = math.ceil(rows / settings.per_device_train_batch_size)
    an_epoch = max(1, math.ceil(batches / settings.gradient_accumulation_steps))
    return math.ceil((settings.num_train_epochs if epochs is None else epochs) * an_epoch)


def repeated_settings(
    given: TrainSection, adapter: AdapterInfo, run: RunArtifact | None
) -> tuple[TrainSection, dict[str, str]]:
    """Take the settings of a run that is to be repeated.

    What section ``train`` says wins; then what the adapter and the run recorded; then defaults.

    Parameters
    ----------
    given
        Section ``train`` as configured.
    adapter
        The adapter that the run gave.
    run
        What the trainer left behind; None if nothing is known.

    Returns
    -------
    TrainSection
        All settings.
    dict
        Where each came from, by name.
    """
    found: dict[str, Any] = {}
    sources: dict[str, str] = {}

    def take(name: str, value: Any, source: str) -> None:
        if value is not None and name not in given.model_fields_set:
            found[name], sources[name] = value, source

    for name in _OF_THE_ADAPTER:
        value = adapter.raw.get(name)
        take(name, sorted(value) if isinstance(value, list | set) else value, "adapter_config.json")
    training = run.training if run is not None else None
    extra: dict[str, Any] = dict(given.extra)
    if training is not None:
        for name in _OF_THE_RUN:
            if name in training.values:
                known = training.values[name]
                take(name, known.value, known.source)
        warmup = training.values.get("warmup_steps")
        if warmup is not None and _positive(warmup.value) and "warmup_ratio" not in sources:
            _take_warmup(warmup.value, warmup.source, given, extra, take)
    if run is not None and run.log is not None:
        _from_the_log(run.log, sources, extra, take)
    merged = {**given.model_dump(), **found, "extra": extra}
    settings = TrainSection.model_validate(merged)
    names = set(TrainSection.model_fields) - {"backend", "base_model", "output_dir", "extra"}
    rest: Mapping[str, str] = {
        name: "section train" if name in given.model_fields_set else "default"
        for name in names - set(sources)
    }
    return settings, dict(sorted({**rest, **sources}.items()))


def _from_the_log(
    log: TrainerLog, sources: Mapping[str, str], extra: dict[str, Any], take: _Take
) -> None:
    """Read the peak of the learning rate off the log where nothing else tells it."""
    rates = {
        int(record["step"]): float(record["learning_rate"])
        for record in log.records
        if _positive(record.get("learning_rate")) and _positive(record.get("step"))
    }
    if not rates or "learning_rate" in sources:
        return
    peak = max(rates, key=lambda step: (rates[step], -step))
    source = f"{log.source}: the highest rate that it logs"
    take("learning_rate", rates[peak], source)
    if "warmup_ratio" not in sources and "warmup_steps" not in extra and "learning_rate" in sources:
        # transformers' schedule is at its peak in the step after the warm-up, which starts at zero
        take("warmup_ratio", 0.0, source)
        if peak > 1:
            extra["warmup_steps"] = peak - 1


def _take_warmup(
    value: float, source: str, given: TrainSection, extra: dict[str, Any], take: _Take
) -> None:
    # newer versions of transformers read a number below 1 as a share
    if value < 1:
        take("warmup_ratio", float(value), source)
    elif "warmup_ratio" not in given.model_fields_set:
        extra.setdefault("warmup_steps", int(value))


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
