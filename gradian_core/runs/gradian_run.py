"""``gradian_run.json``: what a run can tell only while it runs.

A callback in the trainer writes it at the start, at every checkpoint and at the end. It records
what no file of the trainer holds: the arguments after all defaults, versions, the chat template,
the data's fingerprints and order, and the first rows as the model saw them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from gradian_core.errors import InputError
from gradian_core.files import refuse_lfs_pointer, write_atomic
from gradian_core.text import excerpt

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "GRADIAN_RUN",
    "CollatedRow",
    "DataRecord",
    "GitState",
    "GradianRun",
    "LogRecord",
    "read_gradian_run",
    "write_gradian_run",
]

FORMAT: Final = "gradian-run"
FORMAT_VERSION: Final = "1.0"
"""Major and minor version: a reader accepts its own major version, whatever the minor one."""
GRADIAN_RUN: Final = "gradian_run.json"
_MOST_BYTES = 64 << 20


class _Record(BaseModel):
    """Frozen; keys of a newer minor version are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


class GitState(_Record):
    """The working tree that the training script ran from."""

    commit: str
    """Full hash."""
    dirty: bool = False
    """Whether there were changes beside it."""


class DataRecord(_Record):
    """A data set as the trainer got it."""

    rows: int | None = Field(None, ge=0)
    """Rows, None for a stream."""
    columns: tuple[str, ...] = ()
    """Its columns."""
    fingerprint: str | None = None
    """Hash of content and order."""
    id_column: str | None = None
    """Column that names a row, if there is one."""


class CollatedRow(_Record):
    """A row as the collator made it: exactly what the loss was taken on."""

    input_ids: tuple[int, ...]
    """Token ids."""
    labels: tuple[int, ...]
    """Labels of the same length; -100 where there is no loss."""


class LogRecord(_Record):
    """The trainer's log; see :class:`gradian_core.runs.artifact.TrainerLog`."""

    records: tuple[dict[str, Any], ...] = ()
    """Entries, oldest first."""
    global_step: int | None = None
    """Optimiser steps taken."""
    max_steps: int | None = None
    """Optimiser steps planned."""
    epoch: float | None = None
    """Epochs done."""
    finished: bool | None = None
    """Whether training came to its end."""


class GradianRun(_Record):
    """One training run, recorded from inside."""

    format: Literal["gradian-run"] = FORMAT
    """Name of the format."""
    format_version: str = FORMAT_VERSION
    """Version of the format."""
    tool: str
    """Tool that trains: ``transformers``, ``trl``, ``unsloth``, ``axolotl``, …"""
    versions: dict[str, str] = Field(default_factory=dict)
    """Versions of the packages involved, by distribution."""
    git: GitState | None = None
    """The training script's repository."""
    arguments_class: str | None = None
    """Class of the arguments, with its module."""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    """The trainer's arguments under their own names, tokens and host names left out."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Further settings under normalised names, such as ``max_seq_length`` and ``collator``."""
    base_model: str | None = None
    """The base model's name or path."""
    adapter: dict[str, JsonValue] | None = None
    """PEFT's configuration; None for a full fine-tune."""
    adapter_sha256: str | None = None
    """Hash of the adapter's weights at the end."""
    chat_template: str | None = None
    """Source of the chat template that was used."""
    train_data: DataRecord | None = None
    """The training data."""
    eval_data: DataRecord | None = None
    """The evaluation data."""
    sampler_seed: int | None = None
    """Seed that, with ``world_size``, gives the order of rows."""
    world_size: int | None = Field(None, ge=1)
    """Processes that train together."""
    first_rows: tuple[CollatedRow, ...] = ()
    """The first rows of the first batches."""
    log: LogRecord = LogRecord()
    """The log so far."""


def read_gradian_run(path: Path) -> GradianRun:
    """Read a record.

    Raises
    ------
    InputError
        If it is damaged, too large, of another format or of a newer major version.
    """
    refuse_lfs_pointer(path)
    if path.stat().st_size > _MOST_BYTES:
        raise InputError(f"{path} is larger than {_MOST_BYTES >> 20} MiB.")
    try:
        # a log may hold NaN, which strict JSON does not have
        raw = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {excerpt(str(error), 120)}.") from error
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise InputError(f"{path} is no {FORMAT} record.")
    version = str(raw.get("format_version", ""))
    if version.split(".", maxsplit=1)[0] != FORMAT_VERSION.split(".")[0]:
        raise InputError(
            f"{path} has format version {excerpt(version, 20)}; this is {FORMAT_VERSION}.",
            hint="Use the version of gradian-ml that the training ran with, or a newer one.",
        )
    try:
        return GradianRun.model_validate(raw)
    except (ValidationError, RecursionError) as error:
        problem = "nested too deeply"
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False)[0]
            problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise InputError(f"{path} is damaged: {excerpt(problem, 200)}.") from error


def write_gradian_run(path: Path, run: GradianRun) -> None:
    """Write a record, whole or not at all."""
    write_atomic(path, json.dumps(run.model_dump(mode="python"), indent=1) + "\n")
