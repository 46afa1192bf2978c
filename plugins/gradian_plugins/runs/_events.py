"""TensorBoard's event files as a log and as arguments."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradian_core.runs.artifact import TrainerLog

from ._arguments import looks_like_arguments
from ._files import Remarks
from ._tfevents import Events, read_events

__all__ = ["EVENTS", "EventRun", "read_event_run"]

EVENTS = ("events.out.tfevents.*", "runs/events.out.tfevents.*", "runs/*/events.out.tfevents.*")
_ARGUMENTS = "args/text_summary"
_MOST_FILES = 20
_BEGUN = re.compile(r"tfevents\.(\d{1,15})")


@dataclass(slots=True)
class EventRun:
    """What event files say of a run.

    Parameters
    ----------
    log
        Their scalars, None without any.
    arguments
        The Trainer's arguments, empty where they are not among the texts.
    source
        Where the arguments stand.
    """

    log: TrainerLog | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    source: str = ""


def read_event_run(paths: list[Path], remarks: Remarks) -> EventRun:
    """Read event files in the order in which they were begun.

    ``train/loss`` becomes ``loss``, ``eval/loss`` becomes ``eval_loss``. A later file is a run that
    was resumed or started again: what the earlier ones say from its first step on is dropped.
    """
    ordered = sorted(paths, key=_begun)
    if len(ordered) > _MOST_FILES:
        remarks.note(f"Of {len(ordered)} event files the last {_MOST_FILES} were read.")
    run = EventRun()
    records: dict[tuple[int, str], dict[str, Any]] = {}
    for path in ordered[-_MOST_FILES:]:
        events = remarks.attempt(path, lambda p: read_events(p, remarks))
        if events is None:
            continue
        _add(events, records)
        if arguments := _arguments(events, path.name, remarks):
            run.arguments, run.source = arguments, f"{path.name} ({_ARGUMENTS})"
    if records:
        # 'train' before 'eval' at the same step, as the Trainer logs them
        entries = sorted(records.items(), key=lambda item: (item[0][0], item[0][1] == "eval"))
        source = ordered[0].name if len(ordered) == 1 else f"{len(ordered)} TensorBoard event files"
        run.log = TrainerLog(records=tuple(record for _, record in entries), source=source)
    return run


def _begun(path: Path) -> tuple[int, str]:
    match = _BEGUN.search(path.name)
    return (int(match[1]) if match else 0, path.name)


def _add(events: Events, records: dict[tuple[int, str], dict[str, Any]]) -> None:
    kept = [
        (step, kind, name, value)
        for step, tag, value in events.scalars
        for kind, _, name in [tag.partition("/")]
        if name and kind in ("train", "eval")
    ]
    first = min((step for step, *_ in kept), default=None)
    for key in [key for key in records if first is not None and key[0] >= first]:
        del records[key]
    for step, kind, name, value in kept:
        column = name if kind == "train" else f"eval_{name}"
        records.setdefault((step, kind), {"step": step})[column] = value


def _arguments(events: Events, name: str, remarks: Remarks) -> dict[str, Any]:
    text = events.texts.get(_ARGUMENTS)
    if not text:
        return {}
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        remarks.note(f"{name}: the text {_ARGUMENTS} is no JSON.")
        return {}
    usable = isinstance(arguments, dict) and looks_like_arguments(arguments)
    return arguments if usable else {}
