"""A training run, whoever wrote it, in one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["AdapterInfo", "RunArtifact", "TrainerLog", "TrainingConfig", "Value"]


@dataclass(frozen=True, slots=True)
class Value:
    """A setting and where it came from (a file, or the tool's default for its version)."""

    value: Any
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """Trainer settings under transformers' names; a missing key was not found anywhere."""

    tool: str
    version: str | None = None
    values: Mapping[str, Value] = field(default_factory=dict)

    def get(self, key: str) -> Any:
        """Return the value of a setting, or None if it is not known."""
        found = self.values.get(key)
        return None if found is None else found.value


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterInfo:
    """An adapter's own configuration (``adapter_config.json``)."""

    path: Path
    peft_type: str
    base_model: str | None = None
    r: int | None = None
    lora_alpha: float | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerLog:
    """What the trainer logged, oldest first.

    Parameters
    ----------
    records
        One mapping a log entry; keys as transformers writes them (``step``, ``loss``,
        ``learning_rate``, ``grad_norm``, ``eval_loss``, …).
    global_step
        Optimiser steps that were taken.
    max_steps
        Steps that were planned.
    """

    records: tuple[Mapping[str, Any], ...] = ()
    global_step: int | None = None
    max_steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArtifact:
    """One training run.

    Parameters
    ----------
    path
        Folder or file it was read from.
    reader
        Name of the run reader.
    notes
        What was skipped or could not be read, as sentences.
    """

    path: Path
    reader: str
    training: TrainingConfig | None = None
    adapter: AdapterInfo | None = None
    log: TrainerLog | None = None
    notes: tuple[str, ...] = ()
