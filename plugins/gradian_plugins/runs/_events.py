"""TensorBoard's event files as a log and as arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gradian_core.runs.artifact import TrainerLog

from ._arguments import looks_like_arguments
from ._files import Remarks
from ._tfevents import read_events

__all__ = ["EVENTS", "event_arguments", "event_log"]

EVENTS = ("events.out.tfevents.*", "runs/events.out.tfevents.*", "runs/*/events.out.tfevents.*")
_ARGUMENTS = "args/text_summary"


def event_log(paths: list[Path], remarks: Remarks) -> TrainerLog | None:
    """Return the scalars of the event files as log entries, one a step and kind.

    ``train/loss`` becomes ``loss``, ``eval/loss`` becomes ``eval_loss``. Several files are one run
    that was resumed: an entry of a later file replaces that of an earlier one.
    """
    records: dict[tuple[int, str], dict[str, Any]] = {}
    for path in paths:
        events = remarks.attempt(path, lambda p: read_events(p, remarks))
        for step, tag, value in events.scalars if events else ():
            kind, _, name = tag.partition("/")
            if not name or kind not in ("train", "eval"):
                continue
            key = name if kind == "train" else f"eval_{name}"
            records.setdefault((step, kind), {"step": step})[key] = value
    if not records:
        return None
    # 'train' before 'eval' at the same step, as the Trainer logs them
    ordered = sorted(records.items(), key=lambda item: (item[0][0], item[0][1] == "eval"))
    source = paths[-1].name if len(paths) == 1 else f"{len(paths)} TensorBoard event files"
    return TrainerLog(records=tuple(record for _, record in ordered), source=source)


def event_arguments(paths: list[Path], remarks: Remarks) -> tuple[str, dict[str, Any]]:
    """Return the arguments that transformers writes as text, and where they stand."""
    for path in reversed(paths):
        events = remarks.attempt(path, lambda p: read_events(p, remarks))
        text = events.texts.get(_ARGUMENTS) if events else None
        if not text:
            continue
        try:
            arguments = json.loads(text)
        except (ValueError, RecursionError):
            remarks.note(f"{path.name}: the text {_ARGUMENTS} is no JSON.")
            continue
        if isinstance(arguments, dict) and looks_like_arguments(arguments):
            return f"{path.name} ({_ARGUMENTS})", arguments
    return "", {}
