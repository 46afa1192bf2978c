"""``dynamics.always_clipping``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._clipping import clip_norm, settled_norms
from gradian_checks._read import known, origin
from gradian_checks._series import rising
from gradian_checks._trouble import loss_scale
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_LEAST = 10
_FEW = 5
_MOST = 0.90
_NEARLY_ALL = 0.95
_TIGHT = 1.0


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {
        "log": samples.log([1.0] * 40, grad_norm=[3.0, 4.0] * 20),
        "training": samples.training(max_grad_norm=1.0),
    },
    clean=lambda: {
        "log": samples.log([1.0] * 40, grad_norm=[0.6, 1.3] * 20),
        "training": samples.training(max_grad_norm=1.0),
    },
)
def always_clipping(log: LogFacts, training: TrainingConfig | None = None) -> Iterator[Finding]:
    """Gradient norm pinned at the clip threshold.

    Why it matters: where every gradient is cut to one length, an odd batch counts as much as a
    typical one, and the size of the gradient tells the optimiser nothing.

    How to fix: a larger effective batch or a lower learning rate; or a higher ``max_grad_norm`` if
    the norms are steady.

    Threshold: logged norms, which transformers takes before clipping, above ``max_grad_norm`` after
    the warmup, of at least 10: more than 90% low; at least 95% medium; medium as well where they
    also double from the first third to the last. Below a threshold of 1.0, such as QLoRA's 0.3,
    being clipped is the rule (info unless the norms double). With 5 to 9 norms, only if each is
    above twice the threshold (low). AdamW does not mind the scale of gradients, so this is a
    symptom and no fault.

    Not assessed: with fewer norms, and where the threshold is not known or off.
    """
    limit = clip_norm(training)
    if limit is None:
        off = known(training, "max_grad_norm")
        raise NotAssessed(
            "Gradients are not clipped." if off else "The clipping threshold is not known."
        )
    norm = settled_norms(log, training)
    if len(norm) < _FEW:
        raise NotAssessed(
            f"{len(norm) or 'No'} gradient norms were logged after the warmup; {_LEAST} are needed."
        )
    share = float((norm > limit).mean())
    growing = rising(norm, 2.0)
    if len(norm) < _LEAST:
        if not (norm > 2 * limit).all():
            raise NotAssessed(f"Only {len(norm)} gradient norms were logged after the warmup.")
        severity = Severity.LOW
    elif share <= _MOST:
        return
    elif growing or (share >= _NEARLY_ALL and limit >= _TIGHT):
        severity = Severity.MEDIUM
    else:
        severity = Severity.LOW if limit >= _TIGHT else Severity.INFO
    scaled = loss_scale(log, training) is not None
    unset = training is not None and not known(training, "max_grad_norm")
    yield Finding(
        id="dynamics.always_clipping",
        severity=severity,
        title=f"The gradient norm is above the clip threshold in {share:.0%} of {len(norm)} logs",
        detail=f"The median norm is {np.median(norm):.3g} against max_grad_norm={limit:g}."
        + (" The norms double over the run." if growing else ""),
        fix="Make the effective batch larger or the learning rate lower."
        if severity is not Severity.INFO
        else "",
        evidence={
            "max_grad_norm": limit,
            "source": "default of the Trainer"
            if unset or training is None
            else origin(training, "max_grad_norm"),
            "share": share,
            "logged": len(norm),
            "median_norm": float(np.median(norm)),
            "doubles": growing,
        },
        because_of="dynamics.loss_scale_mismatch" if scaled else None,
    )
