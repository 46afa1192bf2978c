"""``config.no_warmup``."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from gradian_checks._lora import full_fine_tune
from gradian_checks._rates import rates
from gradian_checks._read import by_default, known, origin, short
from gradian_checks._steps import warmup_steps
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

_HIGH_RATE = 3e-4
_ROUND = 2e-3


@check(
    severity=Severity.LOW,
    since="0.1",
    trips=lambda: {
        "training": samples.training(learning_rate=5e-4, warmup_steps=0, warmup_ratio=0.0),
        "adapter": samples.adapter(r=16, lora_alpha=32),
    },
    clean=lambda: {"training": samples.training(learning_rate=5e-4, warmup_ratio=0.03)},
)
def no_warmup(
    training: TrainingConfig, adapter: AdapterInfo | None = None, log: LogFacts | None = None
) -> Iterator[Finding]:
    """No warmup with a high learning rate.

    Why it matters: AdamW's first steps are as long as any other, but its estimates are made of
    one batch. A few per cent of warmup keep them from throwing the weights about.

    How to fix: ``warmup_ratio: 0.03``.

    Threshold: an effective warmup of zero (info; low where ``lr * sqrt(alpha / 32)`` is above
    3e-4, or in full fine-tuning). LoRA's B starts at zero, which is a warmup of its own. An absent
    key is not zero everywhere: axolotl warms up over 3% and unsloth over 10%. A learning rate that
    rises at the start of the log is a warmup, whatever the config says.

    Not assessed: where neither config nor log tells.
    """
    logged = None if log is None else _from_log(log)
    if logged is not None and logged[0] is True:
        return
    total = None if log is None else log.max_steps
    steps = warmup_steps(training, total)
    setting = "warmup_steps" if known(training, "warmup_steps") else "warmup_ratio"
    if steps is None or (by_default(training, setting) and logged is not None):
        if logged is None:
            raise NotAssessed("Neither config nor log tells whether there was a warmup.")
        source = logged[1]
    elif steps > 0:
        return
    else:
        source = origin(training, setting)
    full = full_fine_tune(training)
    try:
        rate = None if full else rates(training, adapter, log)
    except NotAssessed:
        rate = None
    high = rate is not None and rate.independent > _HIGH_RATE
    yield Finding(
        id="config.no_warmup",
        severity=Severity.LOW if high or full else Severity.INFO,
        title=(
            f"No warmup at a learning rate of {short(rate.peak.value)}"
            if rate is not None and high
            else "Training starts at the full learning rate, without warmup"
        ),
        detail="LoRA's B starts at zero, which softens the first steps."
        if not full
        else "Full fine-tuning has nothing that softens the first steps.",
        fix="Set warmup_ratio: 0.03." if high or full else "",
        evidence={
            "warmup_steps": 0,
            "source": source,
            "learning_rate": None if rate is None else rate.peak.value,
            "rank_independent": None if rate is None else rate.independent,
        },
    )


def _from_log(log: LogFacts) -> tuple[bool, str] | None:
    """Return whether the log shows a warmup, and why; None if it cannot be told.

    Depending on the version, transformers logs the rate that a step used or the one after it, so
    the first line of a warmup is zero or the first rise: both are below the peak.
    """
    usable = np.isfinite(log.learning_rate) & np.isfinite(log.step)
    steps, rate = log.step[usable], log.learning_rate[usable]
    if len(rate) < 2 or not rate.max() > 0:
        return None
    if rate[0] < rate[: int(np.argmax(np.diff(rate) < 0)) + 1].max() * (1 - 1e-6):
        return True, "the logged learning rate rises at the start"
    if np.all(np.diff(rate) > 0):
        return True, "the logged learning rate rises all along"
    if steps[0] <= 2:
        return False, f"the logged learning rate is at its peak at step {int(steps[0])}"
    start = _straight_start(steps, rate)
    if start is not None:
        return False, f"the logged learning rates lie on a line from {short(start)} at step 0"
    return None


def _straight_start(steps: np.ndarray, rate: np.ndarray) -> float | None:
    """Return where a linear decay began if it began at step 0, at a number people type.

    A warmup moves the start of the line to an odd number: 3% make 2e-4 look like 2.06e-4.
    """
    if len(rate) < 5 or not rate[-1] < rate[0]:
        return None
    slope, start = np.polyfit(steps, rate, 1)
    if np.abs(rate - (slope * steps + start)).max() > _ROUND * start:
        return None
    typed = (float(f"{start:.1g}"), float(f"{start:.2g}"))
    return next((v for v in typed if math.isclose(start, v, rel_tol=_ROUND)), None)
