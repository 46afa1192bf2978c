"""``dynamics.no_loss_logged``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._read import number
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig


@check(
    severity=Severity.LOW,
    since="0.1",
    trips=lambda: {
        "log": samples.log(global_step=768, max_steps=768, closing={"train_loss": 0.97}),
        "training": samples.training(logging_steps=996),
    },
    clean=lambda: {"log": samples.log([2.0, 1.8, 1.7])},
)
def no_loss_logged(log: LogFacts, training: TrainingConfig | None = None) -> Iterator[Finding]:
    """No training loss in the log.

    Why it matters: whether the run went well cannot be told, and no check on its course can be
    made. A mean over the whole run, which transformers writes at the end, hides everything.

    How to fix: ``logging_steps: 10``.

    Threshold: a log without a single training loss, be it a number or not (low).

    Not assessed: without a log.
    """
    if np.isfinite(log.loss).any() or log.loss_bad.any():
        return
    every, steps = number(training, "logging_steps"), log.global_step
    late = every is not None and steps is not None and every > steps
    yield Finding(
        id="dynamics.no_loss_logged",
        severity=Severity.LOW,
        title="No training loss was logged"
        + (f": logging_steps={every:g} exceeds the {steps} steps of the run" if late else ""),
        detail="The checks on the course of training have nothing to look at."
        + ("" if log.train_loss is None else f" The mean of the run is {log.train_loss:.4g}."),
        fix=f"Set logging_steps: {max((steps or 1000) // 100, 1)}.",
        evidence={"logging_steps": every, "steps": steps, "train_loss": log.train_loss},
    )
