"""``config.undertrained``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._read import count, short
from gradian_checks._series import trend
from gradian_checks._steps import epochs, knows_its_end, planned_steps, row_count
from gradian_core.audit import samples
from gradian_core.audit.facts import ExampleFacts, LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_FEW = 50
_ENOUGH = 1000
_WHOLE = 0.98
_TAIL = 0.2
_LEAST = 10
_FALLING = 0.05
_SURE = 2.6
_LEAST_EVALS = 3
_RISEN = 1.01


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {
        "training": samples.training(num_train_epochs=1),
        "log": samples.log([3 - 0.01 * i for i in range(200)]),
    },
    clean=lambda: {
        "training": samples.training(num_train_epochs=2),
        "log": samples.log([1 + 2 * 0.97**i for i in range(400)], epochs=2),
    },
)
def undertrained(
    training: TrainingConfig, examples: ExampleFacts | None = None, log: LogFacts | None = None
) -> Iterator[Finding]:
    """Too few optimizer steps.

    Why it matters: an adapter that stopped early looks like one that cannot learn the task, and
    its influence scores describe a model on its way.

    How to fix: train a whole epoch or more; notebooks come with ``max_steps=60`` for a smoke test.

    Threshold: fewer than 50 optimiser steps in all, or less than one epoch with fewer than 1,000
    steps (low); the training loss still falls by more than 5% over the last fifth of the run
    (medium; at least 10 logged losses there, and a trend beyond chance). Not where the eval loss
    ends above its best: what falls then is the loss of rows that are being learnt by heart.

    Not assessed: where neither steps nor epochs are known, and for a log that may be a piece.
    """
    rows = row_count(examples, log)
    if log is not None and not knows_its_end(log):
        raise NotAssessed("The log may be a piece of the run: it does not say how far that went.")
    steps = log.global_step if log is not None and log.global_step else None
    steps = steps or planned_steps(training, log, rows)
    done = epochs(training, log, rows)
    falling = None if log is None or _past_best(log) else _still_falling(log)
    if steps is None and done is None:
        raise NotAssessed("Neither steps nor epochs are recorded.")
    part = done is not None and done[0] < _WHOLE and (steps is None or steps < _ENOUGH)
    few = steps is not None and steps < _FEW
    if not (part or few or falling is not None):
        return
    reasons = []
    if few or part:
        length = [] if steps is None else [f"{steps} optimiser steps"]
        length += [f"{short(round(done[0], 2))} epochs"] if done is not None else []
        reasons.append(f"Training ran for {' and '.join(length)}.")
    if falling is not None:
        reasons.append(f"The loss still fell by {falling:.0%} over the last fifth of the run.")
    cap = count(training, "max_steps")
    if part and cap:
        reasons.append(f"max_steps={cap} cut it short.")
    yield Finding(
        id="config.undertrained",
        severity=Severity.MEDIUM if falling is not None else Severity.LOW,
        title=(
            "The loss was still falling when training stopped"
            if falling is not None
            else f"Training was short: {reasons[0].removeprefix('Training ran for ')[:-1]}"
        ),
        detail=" ".join(reasons),
        fix=_advice(steps, None if done is None else done[0], part=part),
        evidence={
            "steps": steps,
            "epochs": None if done is None else done[0],
            "rows": rows,
            "fall_over_last_fifth": falling,
        },
    )


def _advice(steps: int | None, done: float | None, *, part: bool) -> str:
    if part and steps and done:
        return f"Train a whole epoch: about {round(steps / done):,} steps."
    return "Train twice as long, and stop where the eval loss stops falling."


def _past_best(log: LogFacts) -> bool:
    evals = log.eval_loss[np.isfinite(log.eval_loss)]
    return len(evals) >= _LEAST_EVALS and bool(evals[-1] > _RISEN * evals.min())


def _still_falling(log: LogFacts) -> float | None:
    """Return the share by which the loss fell over the last fifth, None if it did not."""
    usable = np.isfinite(log.loss) & np.isfinite(log.step)
    if not usable.any():
        return None
    steps, loss = log.step[usable], log.loss[usable]
    tail = loss[steps > steps[-1] - _TAIL * (steps[-1] - steps[0])]
    middle = float(np.median(tail)) if len(tail) >= _LEAST else 0.0
    if not middle > 0:
        return None
    change, certainty = trend(tail)
    fall = -change / (middle - change / 2)
    return fall if fall > _FALLING and certainty < -_SURE else None
