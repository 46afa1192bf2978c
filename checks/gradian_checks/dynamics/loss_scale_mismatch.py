"""``dynamics.loss_scale_mismatch``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._trouble import loss_scale
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_NEAR = 0.25


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {
        "log": samples.log([5.4, 5.2, 5.0, 5.0], eval=[(1, 0.32), (2, 0.31), (3, 0.3), (4, 0.3)]),
        "training": samples.training(gradient_accumulation_steps=16),
    },
    clean=lambda: {
        "log": samples.log([1.3, 1.2, 1.1, 1.0], eval=[(1, 1.4), (2, 1.3), (3, 1.2), (4, 1.2)])
    },
)
def loss_scale_mismatch(log: LogFacts, training: TrainingConfig | None = None) -> Iterator[Finding]:
    """Logged training loss on another scale than eval loss.

    Why it matters: the loss in the log is then a sum where it should be a mean. Gradients are too
    large by the same factor, clipping acts on all of them, and no check that compares the two
    losses means anything.

    How to fix: transformers 4.49 or later; in a custom loss, divide by ``num_items_in_batch``.

    Threshold: the median ratio of training to eval loss at the same steps, over the settled half of
    at least two evaluations, above 3; or below 1/3 from the first evaluation on, since overfitting
    takes its time (medium). The gradient accumulation is named where the ratio is near it.

    Not assessed: with fewer than two evaluations beside logged losses.
    """
    found = loss_scale(log, training)
    if found is None:
        pairs = min(int(np.isfinite(log.loss).sum()), int(np.isfinite(log.eval_loss).sum()))
        if pairs < 2:
            raise NotAssessed("There are fewer than two evaluations beside logged losses.")
        return
    size = found.accumulation
    near = size is not None and size > 1 and abs(found.ratio / size - 1) < _NEAR
    yield Finding(
        id="dynamics.loss_scale_mismatch",
        severity=Severity.MEDIUM,
        title=f"The logged training loss is {found.ratio:.3g} times the eval loss",
        detail=(
            f"That is about gradient_accumulation_steps={size}: the loss is added up, not averaged."
            if near
            else "The two should be alike; one of them is a sum, or over other tokens."
        ),
        fix="Upgrade transformers to 4.49 or later, and train again.",
        evidence={
            "ratio": found.ratio,
            "evaluations": found.pairs,
            "gradient_accumulation_steps": size,
        },
    )
