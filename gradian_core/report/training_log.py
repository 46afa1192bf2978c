"""The trainer's log in a report, thinned to what a picture can show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gradian_core.report.base import Number, Part, Text

__all__ = ["SeriesReport", "TrainingLogReport", "series"]

_POINTS = 200


class SeriesReport(Part):
    """One quantity over the steps of the training."""

    name: Text
    """``loss``, ``eval_loss``, ``learning_rate`` or ``grad_norm``."""
    n_logged: int
    """Number of values in the log; at most 200 of them are kept."""
    step: tuple[float, ...]
    """Steps of the values that are kept."""
    value: tuple[Number, ...]
    """The values; null where one was logged that is not a finite number."""


class TrainingLogReport(Part):
    """What the trainer logged."""

    steps: int | None = None
    """Optimiser steps that were taken; null if unknown."""
    planned: int | None = None
    """Steps that were planned; null if unknown."""
    epochs: Number = None
    """Epochs that were done; null if unknown."""
    series: tuple[SeriesReport, ...] = ()
    """The quantities that were logged."""


def series(
    name: str, step: NDArray[np.float64], value: NDArray[np.float64], bad: NDArray[np.bool_]
) -> SeriesReport | None:
    """Thin a series to 200 values; None if nothing was logged.

    Of each stretch of the log the smallest and the largest value are kept, so that a spike of one
    step does not vanish, and so does whatever is not finite.

    Parameters
    ----------
    name
        What it is.
    step, value
        ``(k,)`` steps and values, NaN where there is none.
    bad
        ``(k,)`` where a value was logged that is not finite.
    """
    logged = np.flatnonzero(np.isfinite(step) & (np.isfinite(value) | bad))
    if not logged.size:
        return None
    kept = logged
    if logged.size > _POINTS:
        stretches = np.array_split(logged, _POINTS // 2)
        kept = np.array(sorted({int(i) for part in stretches for i in _extremes(part, value)}))
    return SeriesReport(
        name=name,
        n_logged=int(logged.size),
        step=tuple(float(s) for s in step[kept]),
        value=tuple(None if bad[i] else float(value[i]) for i in kept),
    )


def _extremes(part: NDArray[np.intp], value: NDArray[np.float64]) -> tuple[int, int]:
    values = value[part]
    if np.isnan(values).any():
        # two are kept of a stretch: what is not finite, and the largest of the rest
        rest = np.where(np.isnan(values), -np.inf, values)
        return int(part[np.isnan(values).argmax()]), int(part[rest.argmax()])
    return int(part[values.argmin()]), int(part[values.argmax()])
