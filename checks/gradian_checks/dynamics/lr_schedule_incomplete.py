"""``dynamics.lr_schedule_incomplete``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gradian_checks._read import flag, known, number, text
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_LEAST = 3
_LEFT = 0.10
_WHOLE = 0.98
_MUCH = 0.6
_TO_ZERO = frozenset({"linear", "cosine", "polynomial", "cosine_with_restarts"})


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {
        "log": samples.log(
            [1.0] * 40, learning_rate=[2e-4 * (1 - i / 100) for i in range(40)], max_steps=100
        )
    },
    clean=lambda: {
        "log": samples.log([1.0] * 100, learning_rate=[2e-4 * (1 - i / 100) for i in range(100)])
    },
)
def lr_schedule_incomplete(
    log: LogFacts, training: TrainingConfig | None = None
) -> Iterator[Finding]:
    """LR schedule did not decay.

    Why it matters: the last, small steps of a decaying schedule are where the loss settles. A run
    that was stopped before them, or a checkpoint from the middle, is rougher than it had to be.

    How to fix: let the run finish, or plan it as long as it can be.

    Threshold: a decaying schedule whose last logged rate is above 10% of the peak, at less than
    98% of the planned steps (low; medium below 60%). Schedules that are constant or end at a
    minimum, early stopping, and a best checkpoint that was kept on purpose are not meant.

    Not assessed: where the planned steps or the learning rates are not known.
    """
    rate = log.learning_rate[np.isfinite(log.learning_rate)]
    if not log.global_step or not log.max_steps:
        raise NotAssessed("The steps taken or planned are not recorded.")
    if len(rate) < _LEAST or not rate.max() > 0:
        raise NotAssessed(f"{len(rate) or 'No'} learning rates were logged; {_LEAST} are needed.")
    if log.global_step >= _WHOLE * log.max_steps:
        return
    if not _decays(rate, training) or _meant(training) or not rate[-1] > _LEFT * rate.max():
        return
    share = log.global_step / log.max_steps
    yield Finding(
        id="dynamics.lr_schedule_incomplete",
        severity=Severity.MEDIUM if share < _MUCH else Severity.LOW,
        title=f"The run ends at step {log.global_step} of {log.max_steps}, with "
        f"{rate[-1] / rate.max():.0%} of the peak learning rate",
        detail="Either it was stopped, or this checkpoint is not the last one.",
        fix=f"Resume it, use the last checkpoint, or plan max_steps: {log.global_step}.",
        evidence={
            "global_step": log.global_step,
            "max_steps": log.max_steps,
            "last_learning_rate": float(rate[-1]),
            "peak_learning_rate": float(rate.max()),
            "finished": log.finished,
        },
    )


def _decays(rate: NDArray[np.float64], training: TrainingConfig | None) -> bool:
    """Whether the schedule goes to zero: by its name, or else because the logged rate falls."""
    schedule = text(training, "lr_scheduler_type")
    if schedule is not None and training is not None:
        options = training.get("lr_scheduler_kwargs")
        floor = isinstance(options, dict) and any("min" in str(key) for key in options)
        return schedule.rsplit(".", 1)[-1] in _TO_ZERO and not floor
    return bool(rate[-1] < rate.max() * (1 - 1e-6))


def _meant(training: TrainingConfig | None) -> bool:
    patience = number(training, "early_stopping_patience")
    best = known(training, "load_best_model_at_end") and flag(training, "load_best_model_at_end")
    return bool(patience) or bool(best)
