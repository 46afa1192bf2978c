"""The summaries that example scripts save: ``all_results.json`` and its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradian_core.runs.artifact import TrainerLog

from ._files import number

__all__ = ["RESULTS", "is_results", "merge_results"]

RESULTS = ("all_results.json", "train_results.json", "eval_results.json")
_CLOSING = ("train_loss", "train_runtime", "train_samples_per_second", "train_steps_per_second")


def is_results(path: Path, text: str) -> bool:
    """Return whether a file is a summary of a training run."""
    return path.name.endswith(RESULTS) and any(
        f'"{key}"' in text for key in (*_CLOSING, "eval_loss")
    )


def merge_results(log: TrainerLog | None, results: Mapping[str, Any]) -> TrainerLog | None:
    """Add the closing entry to a log that lacks it; a summary alone makes a log of that entry."""
    closing = {key: results[key] for key in _CLOSING if number(results.get(key)) is not None}
    held_out = number(results.get("eval_loss"))
    records = list(log.records) if log else []
    if held_out is not None and not any("eval_loss" in record for record in records):
        records.append({"eval_loss": held_out} | _epoch(results))
    if closing and not any("train_loss" in record for record in records):
        records.append(closing | _epoch(results))
    if log is None:
        return TrainerLog(records=tuple(records), source=RESULTS[0]) if records else None
    return replace(log, records=tuple(records))


def _epoch(results: Mapping[str, Any]) -> dict[str, float]:
    epoch = number(results.get("epoch"))
    return {} if epoch is None else {"epoch": epoch}
