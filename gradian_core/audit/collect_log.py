"""A trainer's log to arrays."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.audit.facts import LogFacts
from gradian_core.runs.artifact import TrainerLog

__all__ = ["collect_log"]

_TRAIN = ("loss", "grad_norm", "learning_rate")
_EVAL = "eval_loss"
_CLOSING = ("train_runtime", "train_loss", "train_samples_per_second", "train_steps_per_second")


def collect_log(log: TrainerLog) -> LogFacts:
    """Put the records of a log into columns.

    A record with a loss, a gradient norm or a learning rate is a training record; one with an
    eval loss is an evaluation; one may be both. The closing record, whose ``train_loss`` is the
    mean of the whole run, is neither.

    Numbers may be written as text (``'nan'``, ``'1.2'``), as the console of transformers 5 does.
    """
    main = _main_eval(log.records)
    closing = [record for record in log.records if any(key in record for key in _CLOSING)]
    steps = [record for record in log.records if any(key in record for key in _TRAIN)]
    evals = [record for record in log.records if main in record]
    loss, loss_bad = _column(steps, "loss")
    norm, norm_bad = _column(steps, "grad_norm")
    eval_loss, eval_bad = _column(evals, main)
    extra = {key: value for record in closing for key, value in record.items()}
    mean = _number(extra.get("train_loss"))
    return LogFacts(
        step=_column(steps, "step")[0],
        epoch=_column(steps, "epoch")[0],
        loss=loss,
        loss_bad=loss_bad,
        grad_norm=norm,
        grad_bad=norm_bad,
        learning_rate=_column(steps, "learning_rate")[0],
        eval_step=_column(evals, "step")[0],
        eval_epoch=_column(evals, "epoch")[0],
        eval_loss=eval_loss,
        eval_bad=eval_bad,
        global_step=log.global_step,
        max_steps=log.max_steps,
        epochs_done=log.epoch,
        finished=log.finished,
        train_loss=mean if mean is not None and math.isfinite(mean) else None,
        extra=extra,
        eval_rows=_eval_rows(evals, main),
    )


def _eval_rows(evals: Iterable[Mapping[str, Any]], main: str) -> int | None:
    prefix = main.removesuffix("loss")
    for record in evals:
        seconds = _number(record.get(f"{prefix}runtime"))
        rate = _number(record.get(f"{prefix}samples_per_second"))
        if seconds and rate and math.isfinite(rows := seconds * rate) and rows > 0:
            return max(round(rows), 1)
    return None


def _main_eval(records: Iterable[Mapping[str, Any]]) -> str:
    """Return the key of the evaluation to judge: ``eval_loss``, or the set logged most often."""
    # The records of a log have few sets of keys between them.
    shapes = Counter(tuple(record) for record in records)
    names: Counter[str] = Counter()
    for shape, times in shapes.items():
        for key in shape:
            if isinstance(key, str) and key.startswith("eval_") and key.endswith("_loss"):
                names[key] += times
    if not names or _EVAL in names:
        return _EVAL
    return names.most_common(1)[0][0]


def _column(
    records: Sequence[Mapping[str, Any]], key: str
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return ``(k,)`` values, NaN where there is none, and where one was logged but not finite."""
    numbers = array("d")
    missing = bytearray()
    for record in records:
        number = _number(record.get(key))
        numbers.append(math.nan if number is None else number)
        missing.append(number is None)
    values = np.frombuffer(numbers, np.float64).copy()
    bad = ~np.isfinite(values) & ~np.frombuffer(missing, np.bool_)
    values[bad] = np.nan
    values.setflags(write=False)
    bad.setflags(write=False)
    return values, bad


def _number(value: object) -> float | None:
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except ValueError:
        return None
