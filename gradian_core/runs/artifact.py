"""A training run, whoever wrote it, in one form.

Settings bear transformers' names; :mod:`gradian_core.runs.settings` lists them. Each says where
it was found and what kind of evidence that is, because a setting that is absent from a config
file is never simply off: every tool has a default of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

__all__ = [
    "AdapterInfo",
    "Basis",
    "RunArtifact",
    "TrainerLog",
    "TrainingConfig",
    "UnknownKey",
    "Value",
]

Basis = Literal["ran", "asked", "inferred", "default"]
"""Kinds of evidence, best first: what the trainer recorded while it ran, what a config file asks
for, what follows from other files, and the tool's default where nothing was said."""


@dataclass(frozen=True, slots=True)
class Value:
    """A setting and where it came from.

    Parameters
    ----------
    value
        The setting; None means *set to nothing*: no limit, no seed, switched off.
    source
        A file with its line, or the default of a tool, as words: ``"axolotl.yml:31"``,
        ``"default of axolotl"``.
    basis
        What kind of evidence it is.
    """

    value: Any
    source: str
    basis: Basis = "asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownKey:
    """A key of a config file that the tool does not know and therefore ignored.

    Parameters
    ----------
    name
        The key as written, dotted where it is nested (``datasets.0.prompt_style``).
    value
        Its value.
    source
        File and line.
    meant
        The tool's own key that was probably meant, or None.
    """

    name: str
    value: Any
    source: str
    meant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """Trainer settings under transformers' names; a missing key was not found anywhere.

    Parameters
    ----------
    tool
        ``transformers``, ``trl``, ``unsloth``, ``axolotl``, ``llamafactory``, ``torchtune``,
        ``mlx-lm``, or another tool's name.
    version
        Version of that tool, None if unknown.
    values
        The settings, each from the best evidence there is.
    requested
        What a config file asks for, where the trainer's own record of the same setting is known
        too and stands in ``values``.
    unknown_keys
        Keys that the tool ignored.
    versions
        Versions of the packages involved, by package name, each with how it is known.
    """

    tool: str
    version: str | None = None
    values: Mapping[str, Value] = field(default_factory=dict)
    requested: Mapping[str, Value] = field(default_factory=dict)
    unknown_keys: tuple[UnknownKey, ...] = ()
    versions: Mapping[str, Value] = field(default_factory=dict)

    def get(self, key: str) -> Any:
        """Return the value of a setting, or None if it is not known."""
        found = self.values.get(key)
        return None if found is None else found.value

    @property
    def version_source(self) -> str | None:
        """How the tool's version is known."""
        found = self.versions.get(self.tool)
        return None if found is None else found.source


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterInfo:
    """An adapter's own configuration (``adapter_config.json``), or what a config asks it to be.

    Parameters
    ----------
    path
        The adapter's folder, or the config file that describes it.
    peft_type
        ``LORA``, or another method.
    raw
        Its configuration under PEFT's names.
    source
        File it was read from, with the line where there is one; None for the adapter's own file.
    basis
        ``ran`` for an adapter that exists, ``asked`` for one that a config describes.
    """

    path: Path
    peft_type: str
    base_model: str | None = None
    r: int | None = None
    lora_alpha: float | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None
    basis: Basis = "ran"


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
    epoch
        Epochs that were done, None if unknown.
    finished
        Whether the trainer recorded that it came to its end, None if it says nothing.
    source
        File it was read from.
    """

    records: tuple[Mapping[str, Any], ...] = ()
    global_step: int | None = None
    max_steps: int | None = None
    epoch: float | None = None
    finished: bool | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArtifact:
    """One training run.

    Parameters
    ----------
    path
        Folder or file it was read from.
    reader
        Name of the run reader that knows it best.
    notes
        What was skipped, guessed or could not be read, as sentences.
    refusals
        Why the run, or a file of it, cannot be judged at all, by a stable name:
        ``file_is_lfs_pointer``, ``not_a_training_run``, ``not_a_lora_run``, ``not_sft``.
    specificity
        How closely the reader knows the tool: 10 for the framework under it, 50 for the tool
        itself, 90 for Gradian's own record. The highest names the tool of a merged run.
    readers
        All readers that contributed, best first.
    """

    path: Path
    reader: str
    training: TrainingConfig | None = None
    adapter: AdapterInfo | None = None
    log: TrainerLog | None = None
    notes: tuple[str, ...] = ()
    refusals: Mapping[str, str] = field(default_factory=dict)
    specificity: int = 50
    readers: tuple[str, ...] = ()
