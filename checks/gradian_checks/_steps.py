"""How long a run was, in steps, epochs and rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradian_checks._read import as_number, count, flag, number
from gradian_core.audit.facts import ExampleFacts, LogFacts
from gradian_core.runs.artifact import TrainingConfig

__all__ = [
    "FEW_EVAL_ROWS",
    "Batch",
    "effective_batch",
    "epochs",
    "eval_rows",
    "knows_its_end",
    "planned_steps",
    "row_count",
    "warmup_steps",
]

FEW_EVAL_ROWS = 30
"""Below so many eval rows an eval loss moves by chance as much as by training."""
_MOST_ROWS = 1e12


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows behind one optimiser step.

    Parameters
    ----------
    size
        The product.
    parts
        How it comes about, as words.
    lower_bound
        The number of devices is not known, so it may be more.
    """

    size: int
    parts: str
    lower_bound: bool = False


def effective_batch(training: TrainingConfig | None, log: LogFacts | None) -> Batch | None:
    """Return the rows of one optimiser step over all devices, None if they are not known.

    Where the number of devices is not recorded it is worked out from the throughput that
    transformers writes into the closing record: samples per second over steps per second.
    """
    total = count(training, "total_train_batch_size")
    if total:
        return Batch(total, f"{total} in all")
    device = count(training, "per_device_train_batch_size")
    accumulation = count(training, "gradient_accumulation_steps")
    devices = count(training, "world_size")
    measured = _throughput_batch(log)
    if device is None or accumulation is None:
        # the log alone cannot tell devices from accumulation, but it knows their product
        if measured is None:
            return None
        return Batch(max(round(measured), 1), f"{measured:.1f} by the logged throughput")
    parts = f"{device} a device x {accumulation} accumulated"
    if devices is None and measured is not None:
        devices = max(round(measured / (device * accumulation)), 1)
    if devices is None:
        return Batch(device * accumulation, f"{parts}, one device assumed", lower_bound=True)
    parts += f" x {devices} device{'s' if devices > 1 else ''}"
    return Batch(device * accumulation * devices, parts)


def knows_its_end(log: LogFacts) -> bool:
    """Whether a log tells how far the run went; printed logs and results tables may be pieces."""
    return bool(log.max_steps or log.finished or log.epochs_done or log.extra)


def row_count(examples: ExampleFacts | None, log: LogFacts | None = None) -> int | None:
    """Return the number of training rows, None if it is not known.

    The data set counts; without it, the throughput of the closing record tells rows times epochs.
    """
    if examples is not None:
        return len(examples)
    if log is None:
        return None
    runtime, samples = (_extra(log, k) for k in ("train_runtime", "train_samples_per_second"))
    done = epochs(None, log, None)
    if not runtime or not samples or not done:
        return None
    rows = runtime * samples / done[0]
    return round(rows) if 1 <= rows < _MOST_ROWS else None


def epochs(
    training: TrainingConfig | None, log: LogFacts | None, rows: int | None
) -> tuple[float, str] | None:
    """Return how often each row was seen, and where that is from; None if it is not known.

    What the log says was done comes first. ``max_steps`` wins over the epochs that a config
    asks for.
    """
    if log is not None and log.epochs_done:
        return log.epochs_done, "the trainer's record"
    logged = None if log is None else _logged_epochs(log)
    if logged is not None and not _ran_all(training, log, logged):
        return logged, "the log"
    cap = count(training, "max_steps")
    if cap:
        batch = effective_batch(training, log)
        if batch is None or not rows:
            return None
        return cap * batch.size / rows, f"max_steps={cap} over {rows} rows"
    asked = number(training, "num_train_epochs")
    if asked is None or not asked > 0 or not math.isfinite(asked):
        return None
    return asked, "num_train_epochs"


def planned_steps(
    training: TrainingConfig | None, log: LogFacts | None, rows: int | None
) -> int | None:
    """Return the optimiser steps of the whole plan, None if they cannot be worked out."""
    if log is not None and log.max_steps:
        return log.max_steps
    if cap := count(training, "max_steps"):
        return cap
    asked = number(training, "num_train_epochs")
    batch = effective_batch(training, log)
    if batch is None or batch.lower_bound or not rows or flag(training, "packing"):
        return None
    if asked is None or not 0 < asked < math.inf:
        return None
    return math.ceil(math.ceil(rows / batch.size) * asked)


def warmup_steps(training: TrainingConfig | None, total: int | None) -> float | None:
    """Return the steps of warmup, None if no setting says so.

    A ratio without a known number of steps gives a share below 1, which is still more than none.
    """
    steps, ratio = number(training, "warmup_steps"), number(training, "warmup_ratio")
    if steps is not None and steps >= 1:
        return steps
    share = steps or ratio
    if share is None:
        return steps
    return math.ceil(share * total) if total and 0 < share < math.inf else share


def _logged_epochs(log: LogFacts) -> float | None:
    """Return the epochs of the last log line, carried on to the last step."""
    epoch = np.concatenate([log.epoch, log.eval_epoch])
    step = np.concatenate([log.step, log.eval_step])
    usable = np.isfinite(epoch) & (epoch > 0)
    closing = _extra(log, "epoch")
    if closing:
        return closing
    if not usable.any():
        return None
    last = int(np.argmax(np.where(usable, epoch, -1.0)))
    seen = float(epoch[last])
    rest = log.global_step / step[last] if log.global_step and step[last] > 0 else 1.0
    return seen * max(float(rest), 1.0)


def _ran_all(training: TrainingConfig | None, log: LogFacts | None, logged: float) -> bool:
    """Whether the trainer recorded a number of epochs that the log just stops short of."""
    if log is not None and log.global_step and log.max_steps and log.global_step < log.max_steps:
        return False
    found = None if training is None else training.values.get("num_train_epochs")
    asked = number(training, "num_train_epochs")
    if found is None or found.basis != "ran" or asked is None or count(training, "max_steps"):
        return False
    return 0.5 * asked <= logged <= asked


def _throughput_batch(log: LogFacts | None) -> float | None:
    if log is None:
        return None
    samples = _extra(log, "train_samples_per_second")
    runtime, taken = _extra(log, "train_runtime"), log.global_step
    if samples and runtime and taken:
        return min(samples * runtime / taken, _MOST_ROWS)
    # only three decimals are written, so this is the rougher way
    steps = _extra(log, "train_steps_per_second")
    return min(samples / steps, _MOST_ROWS) if samples and steps and steps >= 0.05 else None


def _extra(log: LogFacts, key: str) -> float | None:
    value = as_number(log.extra.get(key))
    return value if value is not None and math.isfinite(value) else None


def eval_rows(eval_examples: ExampleFacts | None, log: LogFacts | None) -> int | None:
    """Return the size of the eval set: the set itself, or else its throughput in the log."""
    if eval_examples is not None:
        return len(eval_examples)
    return None if log is None else log.eval_rows
