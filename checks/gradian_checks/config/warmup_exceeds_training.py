"""``config.warmup_exceeds_training``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._steps import planned_steps, row_count, warmup_steps
from gradian_core.audit import samples
from gradian_core.audit.facts import ExampleFacts, LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_HALF = 0.5
_LEAST = 3


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {"training": samples.training(warmup_steps=100, max_steps=60)},
    clean=lambda: {"training": samples.training(warmup_steps=5, max_steps=60)},
)
def warmup_exceeds_training(
    training: TrainingConfig, log: LogFacts | None = None, examples: ExampleFacts | None = None
) -> Iterator[Finding]:
    """Warmup that takes up most of the training.

    Why it matters: the learning rate never reaches, or hardly reaches, what the config asks for.
    A run of 6 steps with ``warmup_steps=20`` ends at less than a third of it.

    How to fix: ``warmup_ratio: 0.03`` instead of a number of steps.

    Threshold: a warmup of half of all steps or more (medium), of all steps or more (high). Without
    settings, a finished log in which the rate rises up to the last line (high).

    Not assessed: where the number of steps is not known.
    """
    total = planned_steps(training, log, row_count(examples, log))
    steps = warmup_steps(training, total)
    if steps is not None and 0 < steps < 1:
        share: float | None = steps
    elif steps is not None and total:
        share = steps / total
    else:
        share = None
    rising = log is not None and _rises_to_the_end(log)
    if share is None and not rising:
        if steps == 0 or _falls(log):
            return
        raise NotAssessed("The number of steps, or the warmup, is not known.")
    if not rising and (share is None or share < _HALF):
        return
    whole = rising or (share is not None and share >= 1)
    yield Finding(
        id="config.warmup_exceeds_training",
        severity=Severity.HIGH if whole else Severity.MEDIUM,
        title=(
            "The learning rate was still warming up when training ended"
            if whole
            else f"Warmup takes {share:.0%} of the training"
        ),
        detail=(
            f"{steps:g} steps of warmup against {total} steps in all."
            if steps is not None and total
            else "The logged learning rate rises up to the last line."
        ),
        fix="Set warmup_ratio: 0.03"
        + (f", which is {max(round(0.03 * total), 1)} steps here." if total else "."),
        evidence={"warmup_steps": steps, "steps": total, "share": share, "rises_to_end": rising},
    )


def _rises_to_the_end(log: LogFacts) -> bool:
    rate = log.learning_rate[np.isfinite(log.learning_rate)]
    ended = log.global_step is not None and log.global_step == log.max_steps
    return bool(ended and len(rate) >= _LEAST and np.all(np.diff(rate) > 0))


def _falls(log: LogFacts | None) -> bool:
    """Whether the logged rate falls in the end, so that the warmup was over."""
    if log is None:
        return False
    rate = log.learning_rate[np.isfinite(log.learning_rate)]
    if len(rate) < _LEAST:
        return False
    return bool(int(rate.argmax()) < _HALF * len(rate) and rate[-1] < rate.max())
