"""``dynamics.overfitting``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._steps import FEW_EVAL_ROWS, eval_rows
from gradian_checks._trouble import loss_scale
from gradian_core.audit import samples
from gradian_core.audit.facts import ExampleFacts, LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_LEAST = 3
_MEDIUM = 1.05
_HIGH = 1.15
_LATE = 0.8
_SEVERITIES = (Severity.HIGH, Severity.MEDIUM, Severity.LOW)


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {
        "log": samples.log(
            [2.0 - 0.015 * i for i in range(100)],
            eval=[(20, 1.6), (40, 1.4), (60, 1.5), (80, 1.7), (100, 1.9)],
        )
    },
    clean=lambda: {
        "log": samples.log(
            [2.0 - 0.015 * i for i in range(100)],
            eval=[(20, 1.6), (40, 1.4), (60, 1.38), (80, 1.37), (100, 1.38)],
        )
    },
)
def overfitting(
    log: LogFacts,
    training: TrainingConfig | None = None,
    eval_examples: ExampleFacts | None = None,
) -> Iterator[Finding]:
    """Train loss falling while eval loss rises.

    Why it matters: from there on the model learns the training rows by heart, and pays for it on
    all others.

    How to fix: keep the checkpoint with the lowest eval loss (``load_best_model_at_end: true``),
    or train for fewer epochs.

    Threshold: three evaluations or more, the best before 80% of the run, the last at least 5%
    (medium) or 15% (high) above it, and a training loss that falls meanwhile. A rise of 3% is
    noise. An eval loss may also rise because the model grows sure of itself while its answers get
    better: look at the metric that matters. One level lower on an eval set of fewer than 30 rows.

    Not assessed: with fewer evaluations, or training losses around the best one; and where the
    logged training loss is on another scale (``dynamics.loss_scale_mismatch``).
    """
    finite = np.isfinite(log.eval_loss) & np.isfinite(log.eval_step)
    step, value = log.eval_step[finite], log.eval_loss[finite]
    if len(value) < _LEAST:
        raise NotAssessed(f"The log has {len(value) or 'no'} evaluations; {_LEAST} are needed.")
    if loss_scale(log, training) is not None:
        raise NotAssessed("Training and eval loss are on different scales.")
    best = int(value.argmin())
    ratio = float(value[-1] / value[best]) if value[best] > 0 else 1.0
    end = max(float(log.global_step or 0), float(step[-1]))
    if ratio < _MEDIUM or step[best] >= _LATE * end:
        return
    usable = np.isfinite(log.loss) & np.isfinite(log.step)
    before = log.loss[usable & (log.step <= step[best])][-3:]
    after = log.loss[usable & (log.step > step[best])][-3:]
    if not len(before) or not len(after):
        raise NotAssessed("No training loss was logged before and after the best evaluation.")
    train = float(np.median(before)), float(np.median(after))
    if not train[1] < train[0]:
        return
    at = int(step[best])
    rows = eval_rows(eval_examples, log)
    few = rows is not None and rows < FEW_EVAL_ROWS
    yield Finding(
        id="dynamics.overfitting",
        severity=_SEVERITIES[(ratio < _HIGH) + few],
        title=f"Eval loss is {ratio - 1:.0%} above its best (step {at}) while training loss falls",
        detail=f"Eval loss went from {value[best]:.3g} to {value[-1]:.3g}, training loss from "
        f"{train[0]:.3g} to {train[1]:.3g}."
        + (f" The eval set has {rows} rows: it may be chance." if few else ""),
        fix=f"Keep the checkpoint nearest to step {at}, or set load_best_model_at_end: true.",
        evidence={
            "best_eval_loss": float(value[best]),
            "best_step": at,
            "last_eval_loss": float(value[-1]),
            "ratio": ratio,
            "evaluations": len(value),
            "eval_rows": rows,
            "train_loss_then": train[0],
            "train_loss_last": train[1],
        },
    )
