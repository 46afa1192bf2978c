"""Signs in a log that training came apart, shared by the checks that report or explain them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradian_checks._read import count
from gradian_checks._series import longest_run, median_of_three, runs, trailing
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.runs.artifact import TrainingConfig

__all__ = [
    "Climb",
    "LossScale",
    "broke_down",
    "climbs",
    "dead_records",
    "explosion",
    "loss_scale",
    "losses",
    "norms",
    "scale_is_right",
    "silent_norms",
]

_WINDOW = 50
_LEAST = 5
_CLIMB = 1.5
_CLIMB_MAD = 5.0
_CLIMB_FLOOR = 0.1
"""In nats: memorised data has losses near zero, whose ratios mean nothing."""
_BACK = 0.05
_BLOWUP = 10.0
_BLOWUP_FLOOR = 5.0
_SCALE = 3.0
_ALIKE = 1.7


@dataclass(frozen=True, slots=True)
class Climb:
    """A stretch in which the smoothed loss stood above what came before.

    Parameters
    ----------
    start, end
        Positions in the finite losses, the end being exclusive.
    base, top
        Rolling median before it, and its highest smoothed value.
    stayed
        It did not come back within 5% of the run.
    """

    start: int
    end: int
    base: float
    top: float
    stayed: bool


@dataclass(frozen=True, slots=True)
class LossScale:
    """Logged training loss over eval loss at the same steps, when the ratio is off for good."""

    ratio: float
    pairs: int
    accumulation: int | None


def losses(log: LogFacts, least: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ``(steps, losses)`` of the finite losses.

    Raises
    ------
    NotAssessed
        If there are fewer than ``least``.
    """
    finite = np.isfinite(log.loss)
    if finite.sum() < least:
        raise NotAssessed(f"The log has {int(finite.sum())} losses; {least} are needed.")
    return log.step[finite], log.loss[finite]


def norms(log: LogFacts, least: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ``(steps, gradient norms)`` of the finite norms.

    Raises
    ------
    NotAssessed
        If there are fewer than ``least``.
    """
    finite = np.isfinite(log.grad_norm)
    if finite.sum() < least:
        logged = int(finite.sum())
        raise NotAssessed(f"The log has {logged or 'no'} gradient norms; {least} are needed.")
    return log.step[finite], log.grad_norm[finite]


def dead_records(log: LogFacts) -> NDArray[np.bool_]:
    """Return where a loss of exactly zero stands with a norm of zero, NaN or infinity.

    transformers hides NaN losses (``logging_nan_inf_filter``): a dead run then reads so.
    """
    dead: NDArray[np.bool_] = (log.loss == 0.0) & (log.grad_bad | (log.grad_norm == 0.0))
    return dead


def silent_norms(log: LogFacts) -> int:
    """Return the longest run of non-finite gradient norms after the first five steps.

    A loss scaler looks for its scale at the start, and a lone overflow is its normal work.
    """
    late = ~(log.step <= _LEAST)
    return longest_run(log.grad_bad & late)


def climbs(loss: NDArray[np.float64]) -> list[Climb]:
    """Return where the median of three losses is 1.5 x the rolling median and 5 MAD above it."""
    smooth = median_of_three(loss)
    base, spread = trailing(loss, _WINDOW, _LEAST)
    with np.errstate(invalid="ignore"):
        rise = smooth - base
        high = (smooth > _CLIMB * base) & (rise > _CLIMB_MAD * spread) & (rise > _CLIMB_FLOOR)
    found = []
    patience = max(3, int(np.ceil(_BACK * len(loss))))
    resume = 0
    for start, _ in runs(high):
        if start < resume:
            continue
        # against the level before it: the rolling median itself climbs along in a long one
        above = smooth[start:] > _CLIMB * base[start]
        length = len(above) if above.all() else int(np.argmin(above))
        resume = start + length
        stayed = length > patience or resume == len(loss)
        top = float(smooth[start:resume].max())
        found.append(Climb(start, resume, float(base[start]), top, stayed))
    return found


def explosion(norm: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return where a gradient norm is above 10 x the rolling median and above 5."""
    base, _ = trailing(norm, _WINDOW, _LEAST)
    with np.errstate(invalid="ignore"):
        return (norm > _BLOWUP * base) & (norm > _BLOWUP_FLOOR)


def loss_scale(log: LogFacts, training: TrainingConfig | None) -> LossScale | None:
    """Return by how much the logged training loss is off, None where it is not or unknown.

    A training loss may exceed the eval loss while it falls, since it is a mean over the steps
    behind it; so the settled half counts. One below a third of the eval loss *from the first
    evaluation on* is not overfitting, which takes its time.
    """
    ratio = _ratios(log)
    if len(ratio) < 2:
        return None
    settled = float(np.median(ratio[len(ratio) // 2 :]))
    if not (settled > _SCALE or ratio.max() < 1 / _SCALE):
        return None
    return LossScale(settled, len(ratio), count(training, "gradient_accumulation_steps"))


def scale_is_right(log: LogFacts) -> bool:
    """Whether training and eval loss are seen to lie on one scale."""
    ratio = _ratios(log)
    return len(ratio) >= 2 and 1 / _ALIKE < float(np.median(ratio)) < _ALIKE


def _ratios(log: LogFacts) -> NDArray[np.float64]:
    finite = np.isfinite(log.loss) & np.isfinite(log.step) & (log.loss > 0)
    steps, loss = log.step[finite], log.loss[finite]
    kept = np.isfinite(log.eval_loss) & np.isfinite(log.eval_step) & (log.eval_loss > 0)
    if not len(steps):
        return np.array([])
    at, value = log.eval_step[kept], log.eval_loss[kept]
    # the last log line at or before the evaluation, unless it is stale
    place = np.searchsorted(steps, at, side="right") - 1
    gap = np.median(np.diff(steps)) if len(steps) > 1 else 0.0
    usable = (place >= 0) & (at - steps[place.clip(min=0)] <= gap)
    ratio: NDArray[np.float64] = loss[place[usable]] / value[usable]
    return ratio


def broke_down(log: LogFacts | None) -> bool:
    """Whether training diverged for good: dead or non-finite, exploded, or a climb that stayed."""
    if log is None:
        return False
    if bool(log.loss_bad.any()) or int(dead_records(log).sum()) >= 2 or silent_norms(log) >= 3:
        return True
    loss = log.loss[np.isfinite(log.loss)]
    norm = log.grad_norm[np.isfinite(log.grad_norm)]
    blown = longest_run(explosion(norm)) >= 3 if len(norm) > _LEAST else False
    return blown or (len(loss) >= 10 and any(climb.stayed for climb in climbs(loss)))
