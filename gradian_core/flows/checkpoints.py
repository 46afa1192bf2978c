"""The states of the adapter that a training run saved on the way."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from gradian_core.errors import InputError
from gradian_core.flows.session import Session
from gradian_core.protocols import Checkpoint
from gradian_core.runs.artifact import RunArtifact

__all__ = ["find_checkpoints", "last_learning_rate", "learning_rate_at"]

_NAME = re.compile(r"checkpoint-(\d{1,12})")


def find_checkpoints(session: Session) -> tuple[tuple[Checkpoint, ...], tuple[str, ...]]:
    """Return the saved adapters by step, the one that is attributed last, and notes.

    Folders ``checkpoint-<step>`` of the run folder count up to the adapter's own state: where a
    checkpoint has the adapter's content, those after it are no part of its history.
    """
    run = session.run
    records = () if run is None or run.log is None else run.log.records
    own = session.adapter_digest(session.adapter)
    found: list[Checkpoint] = []
    notes: list[str] = []
    step = None if run is None or run.log is None else run.log.global_step
    rate = last_learning_rate(run)
    for number, folder in _folders(session):
        try:
            digest = session.adapter_digest(folder)
        except InputError as error:
            notes.append(f"{folder.name} was left out: {error.message}")
            continue
        at = learning_rate_at(records, number)
        if digest == own:
            step, rate = number, rate if at is None else at
            break
        found.append(Checkpoint(path=folder, step=number, learning_rate=at))
    final = Checkpoint(path=session.adapter, step=step, learning_rate=rate)
    return (*found, final), tuple(notes)


def _folders(session: Session) -> list[tuple[int, Path]]:
    if not session.config.run_dir:
        return []
    run = Path(session.config.run_dir).expanduser()
    folder = run if run.is_dir() else run.parent
    if _NAME.fullmatch(folder.resolve().name):
        folder = folder.resolve().parent
    named = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir() if path.is_dir())
    return sorted(
        (int(match[1]), path)
        for match, path in named
        if match is not None and (path / "adapter_config.json").is_file()
    )


def learning_rate_at(records: Sequence[Mapping[str, Any]], step: int) -> float | None:
    """Return the learning rate that the log has for a step: of the last entry up to it.

    A zero, which a schedule logs for its last step, scales a whole checkpoint away; the entry
    before it stands in.
    """
    known = [
        (float(at), float(rate))
        for at, rate in ((r.get("step"), r.get("learning_rate")) for r in records)
        if _is_number(at) and _is_number(rate) and float(rate) > 0.0 and float(at) <= step
    ]
    return max(known, key=lambda entry: entry[0])[1] if known else None


def last_learning_rate(run: RunArtifact | None) -> float | None:
    """Return the last learning rate in the log that is not zero.

    A schedule that ends at zero logs a zero for its last step, which scales every score away.
    """
    if run is None or run.log is None:
        return None
    rates = [record.get("learning_rate") for record in run.log.records]
    known = [float(r) for r in rates if _is_number(r) and r > 0]
    return known[-1] if known else None


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
