"""``dynamics.too_few_steps``."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._read import count
from gradian_checks._steps import knows_its_end
from gradian_core.audit import samples
from gradian_core.audit.facts import ExampleFacts, LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_BANDS = ((20, Severity.HIGH), (50, Severity.MEDIUM), (100, Severity.LOW))


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {"log": samples.log([2.0] * 6)},
    clean=lambda: {"log": samples.log([2.0] * 180)},
)
def too_few_steps(
    log: LogFacts, training: TrainingConfig | None = None, examples: ExampleFacts | None = None
) -> Iterator[Finding]:
    """Barely any logged steps.

    Why it matters: an adapter starts from zero, and in so few steps it does not come far. Runs
    below 100 steps want much higher learning rates than longer ones.

    How to fix: more epochs, a smaller effective batch, or more data.

    Threshold: fewer than 100 optimiser steps low, fewer than 50 medium, fewer than 20 high.

    Not assessed: where the number of steps taken is not recorded, as in a piece of a log, and
    where none of them was logged.
    """
    steps = log.global_step
    if steps is None or not knows_its_end(log):
        raise NotAssessed("The log may be a piece of the run: it does not say how far that went.")
    severity = next((s for bound, s in _BANDS if steps < bound), None)
    if severity is None:
        if not len(log.step):
            raise NotAssessed(f"None of the {steps} steps was logged.")
        return
    cap = count(training, "max_steps")
    smoke = cap is not None and cap <= steps
    yield Finding(
        id="dynamics.too_few_steps",
        severity=severity,
        title=f"Training took {steps} optimiser steps",
        detail=f"max_steps={cap} ended it: that is a smoke test."
        if smoke
        else "In so few steps an adapter does not move far from zero.",
        fix="Remove max_steps." if smoke else "Train for more steps: a smaller batch, more data.",
        evidence={
            "steps": steps,
            "planned": log.max_steps,
            "max_steps": cap,
            "rows": None if examples is None else len(examples),
        },
    )
