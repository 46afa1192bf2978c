"""``dynamics.loss_plateau``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._steps import warmup_steps
from gradian_checks._trouble import broke_down, losses
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_LEAST = 10
_STEPS = 50
_DROP = 0.03
_LEARNT = 0.5
_EARLY = 0.25


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {"log": samples.log([1.9, 1.92] * 50, learning_rate=[1e-4] * 100)},
    clean=lambda: {"log": samples.log([0.3 + 2 * 0.8**i for i in range(100)])},
)
def loss_plateau(log: LogFacts, training: TrainingConfig | None = None) -> Iterator[Finding]:
    """Loss barely moved.

    Why it matters: the adapter was trained and learnt nothing. Often the learning rate is far too
    low, the targets match no module, or the loss is on tokens that the model knows already.

    How to fix: check ``config.lr_too_low``, the target modules and the loss mask.

    Threshold: over at least 50 steps after the warmup, the median loss of the last fifth is less
    than 3% below that of the first (medium). A loss that is flat *after* a fast drop has converged;
    one below 0.5 from the start belongs to a model that knows the task; and an eval loss that
    falls by 3% shows learning.

    Not assessed: with fewer than 10 losses or 50 steps, with a first log line that is a quarter of
    the run away from the start, and where training broke down.
    """
    steps, loss = losses(log, _LEAST)
    if broke_down(log):
        raise NotAssessed("Training came apart, which other checks report.")
    known = np.isfinite(steps)
    if not known.all():
        raise NotAssessed("The log does not say at which steps its losses are.")
    warmup = warmup_steps(training, log.max_steps) or 0.0
    span = float(steps[-1] - max(steps[0], warmup if warmup >= 1 else 0.0))
    if span < _STEPS or steps[0] > _EARLY * steps[-1]:
        raise NotAssessed(
            f"The log covers {max(span, 0):.0f} steps after the warmup from early on."
        )
    rate = log.learning_rate[np.isfinite(log.learning_rate)]
    if len(rate) and not rate.max() > 0:
        raise NotAssessed("The logged learning rate is zero all along.")
    part = max(len(loss) // 5, 3)
    first, last = float(np.median(loss[:part])), float(np.median(loss[-part:]))
    # the very start counts as well: a drop within the first fifth is learning
    first = max(first, float(np.median(loss[:3])))
    drop = 1 - last / first if first > 0 else 1.0
    if drop >= _DROP or first < _LEARNT or _eval_falls(log):
        return
    yield Finding(
        id="dynamics.loss_plateau",
        severity=Severity.MEDIUM,
        title=f"The loss barely moved: {first:.3g} to {last:.3g} over {int(steps[-1])} steps",
        detail="The adapter learnt next to nothing from this data.",
        fix="Check the learning rate, the target modules and which tokens the loss is on.",
        evidence={
            "first": first,
            "last": last,
            "drop": drop,
            "steps": int(steps[-1]),
            "logged": len(loss),
        },
    )


def _eval_falls(log: LogFacts) -> bool:
    finite = log.eval_loss[np.isfinite(log.eval_loss)]
    return len(finite) >= 2 and bool(finite[-1] < finite[0] * (1 - _DROP))
