"""``dynamics.lr_rewarm_on_resume``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gradian_checks._read import short, text
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_LEAST = 4
_JUMP = 3.0
_FALLEN = 0.9
_NOTABLE = 0.1


def _decay(steps: int, planned: int, start: int = 0) -> list[float]:
    return [2e-4 * (1 - i / planned) for i in range(start, start + steps)]


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {
        "log": samples.log([1.0] * 180, learning_rate=_decay(60, 60) + _decay(120, 180, 60))
    },
    clean=lambda: {"log": samples.log([1.0] * 180, learning_rate=_decay(180, 180))},
)
def lr_rewarm_on_resume(log: LogFacts, training: TrainingConfig | None = None) -> Iterator[Finding]:
    """Learning rate that jumps up again on resume.

    Why it matters: a run that was finished and resumed with a longer plan starts at a high rate
    again, with the optimiser's memory of the low one. The loss often jumps, and what was settled
    is stirred up.

    How to fix: plan the whole length from the start, or begin a new run from the adapter.

    Threshold: the logged rate rises more than threefold from one line to the next after it has
    fallen, to at least 10% of its peak (medium). Schedules with restarts do that on purpose.

    Not assessed: with fewer than 4 logged rates.
    """
    usable = np.isfinite(log.learning_rate)
    step, rate = log.step[usable], log.learning_rate[usable]
    if len(rate) < _LEAST or not rate.max() > 0:
        raise NotAssessed(f"{len(rate) or 'No'} learning rates were logged; {_LEAST} are needed.")
    schedule = text(training, "lr_scheduler_type") or ""
    if any(word in schedule for word in ("restart", "cycl", "plateau", "rex")):
        return
    jumps = _jumps(rate)
    if not len(jumps) or _regular(jumps):
        return
    first = int(jumps[0])
    before, after = float(rate[first : first + 2][0]), _top(rate, first)
    at = int(step[first + 1]) if np.isfinite(step[first + 1]) else None
    yield Finding(
        id="dynamics.lr_rewarm_on_resume",
        severity=Severity.MEDIUM,
        title=f"The learning rate jumps from {short(before)} to {short(after)}"
        + ("" if at is None else f" at step {at}"),
        detail="It had fallen before, so the run was resumed with a longer plan.",
        fix="Plan the whole length from the start; or train a new run from the first adapter.",
        evidence={
            "step": at,
            "before": before,
            "after": after,
            "jumps": len(jumps),
            "peak": float(rate.max()),
        },
    )


def _jumps(rate: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return positions after which the rate rises threefold, having fallen from its peak."""
    peak = np.maximum.accumulate(rate)
    fallen = np.maximum.accumulate(rate < _FALLEN * peak)[:-1]
    rises = rate[1:] > _JUMP * rate[:-1]
    return np.flatnonzero(fallen & rises & (rate[1:] > _NOTABLE * rate.max()))


def _regular(jumps: NDArray[np.intp]) -> bool:
    """Whether the jumps come at even distances, as those of a schedule with restarts do."""
    if len(jumps) < 2:
        return False
    gaps = np.diff(np.concatenate(([0], jumps)))
    return bool(np.ptp(gaps) <= max(2.0, 0.1 * gaps.mean()))


def _top(rate: NDArray[np.float64], position: int) -> float:
    return float(rate[position + 1 : position + 3].max())
