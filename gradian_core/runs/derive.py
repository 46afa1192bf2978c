"""Settings that follow from other settings and from the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradian_core.runs.artifact import TrainerLog, Value

__all__ = ["derived"]


def derived(values: Mapping[str, Value], log: TrainerLog | None) -> dict[str, Value]:
    """Return the settings and, marked as inferred, those that follow from them.

    Parameters
    ----------
    values
        What is known.
    log
        The trainer's log.
    """
    found = dict(values)
    _batches(found)
    if log is not None:
        _evaluation(found, log)
    return found


def _batches(found: dict[str, Value]) -> None:
    """Find one of rows a step = rows on a device x accumulation x devices from the others."""
    rows = _whole(found, "per_device_train_batch_size")
    accumulation = _whole(found, "gradient_accumulation_steps")
    devices = _whole(found, "world_size")
    total = _whole(found, "total_train_batch_size")
    origin = "batch sizes together"
    if rows and accumulation and devices and total is None:
        product = Value(rows * accumulation * devices, origin, "inferred")
        found["total_train_batch_size"] = product
    elif rows and accumulation and total and devices is None and total % (rows * accumulation) == 0:
        found["world_size"] = Value(total // (rows * accumulation), origin, "inferred")
    elif rows and devices and total and accumulation is None and total % (rows * devices) == 0:
        found["gradient_accumulation_steps"] = Value(total // (rows * devices), origin, "inferred")


def _evaluation(found: dict[str, Value], log: TrainerLog) -> None:
    """Conclude from logged evaluations that there is an eval set, and from none that not."""
    # The records of a log have few sets of keys between them.
    keys = {key for shape in {frozenset(record) for record in log.records} for key in shape}
    evaluated = any(
        isinstance(key, str) and key.startswith("eval_") and key.endswith("loss") for key in keys
    )
    known = found.get("has_eval_set")
    if evaluated and (known is None or not known.value):
        found["has_eval_set"] = Value(True, f"eval_loss in {log.source or 'the log'}", "ran")
    elif not evaluated and known is None and log.records:
        source = f"no eval_loss in {log.source or 'the log'}"
        found["has_eval_set"] = Value(False, source, "inferred")


def _whole(found: Mapping[str, Value], name: str) -> int | None:
    value: Any = found[name].value if name in found else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
