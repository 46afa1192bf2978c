"""``config.grad_clip_disabled``."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from gradian_checks._read import by_default, known, number, origin
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_LARGE = 10.0


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {"training": samples.training(max_grad_norm=0.0)},
    clean=lambda: {"training": samples.training(max_grad_norm=1.0)},
)
def grad_clip_disabled(training: TrainingConfig, log: LogFacts | None = None) -> Iterator[Finding]:
    """Gradient clipping disabled.

    Why it matters: without clipping, one odd batch can move the adapter as far as a hundred
    ordinary ones do.

    How to fix: ``max_grad_norm: 1.0`` (``clip_grad_norm: 1.0`` in torchtune).

    Threshold: a norm of 0, nothing or infinity (info), and a logged gradient norm above 10
    (medium). An absent key means 1.0 in every tool on transformers' Trainer.

    Not assessed: where the setting is not known, or DeepSpeed may clip by a config of its own.
    """
    if not known(training, "max_grad_norm"):
        raise NotAssessed("Whether gradients were clipped is not recorded.")
    limit = number(training, "max_grad_norm")
    if limit is not None and 0 < limit < math.inf:
        return
    if training.get("deepspeed"):
        raise NotAssessed("DeepSpeed may clip by its own config, which was not read.")
    norms = np.array([]) if log is None else log.grad_norm[np.isfinite(log.grad_norm)]
    peak = float(norms.max()) if len(norms) else None
    large = peak is not None and peak > _LARGE
    unset = by_default(training, "max_grad_norm")
    yield Finding(
        id="config.grad_clip_disabled",
        severity=Severity.MEDIUM if large else Severity.INFO,
        title=(
            f"Gradients are not clipped, and their norm reached {peak:.3g}"
            if large
            else "Gradients are not clipped"
        ),
        detail=(
            f"{training.tool} does not clip unless it is told to."
            if unset
            else f"It is switched off ({origin(training, 'max_grad_norm')})."
        ),
        fix="Clip gradients to a norm of 1.0." if large else "",
        evidence={
            "max_grad_norm": limit if limit != math.inf else "inf",
            "source": origin(training, "max_grad_norm"),
            "largest_norm": peak,
        },
    )
