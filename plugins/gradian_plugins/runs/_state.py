"""``trainer_state.json``: the Trainer's log, and the little that it says of the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradian_core.errors import InputError
from gradian_core.runs.artifact import TrainerLog, Value
from gradian_core.runs.evidence import found

from ._files import finite, head, integer, json_value, number

__all__ = ["STATE", "State", "checkpoints", "is_state", "read_state", "trl_metrics"]

STATE = "trainer_state.json"
_SHARED = ("max_steps", "num_train_epochs", "train_batch_size")
_TRL_METRICS = frozenset({"entropy", "mean_token_accuracy", "num_tokens"})


@dataclass(frozen=True, slots=True)
class State:
    """A trainer state.

    Parameters
    ----------
    log
        Its log.
    values
        Settings that it holds or that follow from it.
    identity
        What all checkpoints of one run agree on.
    """

    log: TrainerLog
    values: Mapping[str, Value]
    identity: Mapping[str, Any]


def is_state(path: Path) -> bool:
    """Return whether a file is a trainer state or a piece of one, whatever its name."""
    if path.suffix.lower() != ".json":
        return False
    text = head(path)
    return '"log_history"' in text or (
        text.lstrip()[:1] == "["
        and '"step"' in text
        and ('"loss"' in text or '"eval_loss"' in text)
    )


def checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """Return ``(step, folder)`` of the checkpoints in a folder, by number: 200 before 1000."""
    found_: list[tuple[int, Path]] = []
    for entry in folder.glob("checkpoint-*"):
        match = re.fullmatch(r"checkpoint-(\d{1,12})", entry.name)
        if match and entry.is_dir():
            found_.append((int(match[1]), entry))
    return sorted(found_)


def read_state(path: Path) -> State:
    """Read a trainer state, or a list of log entries cut out of one.

    Raises
    ------
    InputError
        If it is damaged, or its ``log_history`` is no list of objects.
    """
    state = json_value(path)
    if isinstance(state, list) and state:
        state = {"log_history": state}
    if not isinstance(state, dict):
        raise InputError(f"{path} is not a JSON object.")
    records = state.get("log_history", [])
    if not isinstance(records, list) or not all(isinstance(entry, dict) for entry in records):
        raise InputError(f"{path}: log_history is not a list of objects.")
    log = TrainerLog(
        records=tuple(records),
        global_step=integer(state.get("global_step")),
        max_steps=integer(state.get("max_steps")),
        epoch=number(state.get("epoch")),
        finished=_finished(state),
        source=path.name,
    )
    return State(log, _values(state, log), {key: state[key] for key in _SHARED if key in state})


def trl_metrics(records: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the log holds what only trl's trainers measure."""
    return any(not _TRL_METRICS.isdisjoint(record) for record in records[:50])


def _finished(state: Mapping[str, Any]) -> bool | None:
    callbacks = state.get("stateful_callbacks")
    control = callbacks.get("TrainerControl") if isinstance(callbacks, dict) else None
    args = control.get("args") if isinstance(control, dict) else None
    stop = args.get("should_training_stop") if isinstance(args, dict) else None
    return stop if isinstance(stop, bool) else None


def _values(state: Mapping[str, Any], log: TrainerLog) -> dict[str, Value]:
    name = log.source or STATE
    # a Trainer has these from its arguments, but epochs are rounded up and the batch is that of
    # all devices of one process
    values = found({"logging_steps": state.get("logging_steps")}, name, "inferred")
    values |= found({"save_steps": state.get("save_steps")}, name, "inferred")
    values |= found(
        {"num_train_epochs": state.get("num_train_epochs")}, f"{name} (rounded up)", "inferred"
    )
    values |= found(
        {"per_device_train_batch_size": state.get("train_batch_size")}, name, "inferred"
    )
    values = {key: value for key, value in values.items() if value.value is not None}
    closing: Mapping[str, Any] = next((r for r in reversed(log.records) if "train_loss" in r), {})
    values |= found({k: closing[k] for k in ("train_loss",) if k in closing}, name, "ran")
    return values | _cap(log, state, name)


def _cap(log: TrainerLog, state: Mapping[str, Any], name: str) -> dict[str, Value]:
    """Return max_steps of a run that took all its steps and ended inside an epoch."""
    epochs, done, steps = finite(state.get("num_train_epochs")), finite(log.epoch), log.global_step
    if not epochs or not done or not steps or steps != log.max_steps:
        return {}
    # where an epoch is no whole number of steps, up to one step of each may be missing
    slack = (epochs + 0.5) * done / steps
    if epochs - done <= slack:
        return {}
    origin = f"{name} (ended after {done:.2f} of {epochs:g} epochs)"
    return {"max_steps": Value(steps, origin, "inferred")}
