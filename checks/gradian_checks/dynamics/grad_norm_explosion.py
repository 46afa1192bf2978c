"""``dynamics.grad_norm_explosion``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._series import runs, trailing
from gradian_checks._trouble import explosion, norms
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts
from gradian_core.check import check
from gradian_core.findings import Finding, Severity

_LEAST = 10
_IN_A_ROW = 3


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {"log": samples.log([1.0] * 30, grad_norm=[0.5] * 26 + [8.0, 30.0, 90.0, 400.0])},
    clean=lambda: {"log": samples.log([1.0] * 30, grad_norm=[0.5 + 0.05 * i for i in range(30)])},
)
def grad_norm_explosion(log: LogFacts) -> Iterator[Finding]:
    """Gradient-norm blowup.

    Why it matters: a norm that leaves its range by a factor of ten is the first sign of divergence,
    often some steps before the loss shows it.

    How to fix: a lower learning rate, ``max_grad_norm: 1.0``, bf16 instead of fp16; and a look at
    the rows of that step.

    Threshold: a norm above 10 times the rolling median and above 5, for three logs in a row or up
    to the end of the log (high); shorter (low). Norms that fall from a high start, or creep up
    slowly, are not meant.

    Not assessed: with fewer than 10 logged norms. NaN and infinity are ``dynamics.nan_loss``'s.
    """
    steps, norm = norms(log, _LEAST)
    blown = explosion(norm)
    stretches = runs(blown)
    if not stretches:
        return
    start, end = max(stretches, key=lambda s: (s[1] == len(norm), s[1] - s[0]))
    lasting = end - start >= _IN_A_ROW or end == len(norm)
    base = float(trailing(norm[max(start - 50, 0) : start + 1], 50, 5)[0][-1])
    peak = float(norm[blown].max())
    at = int(steps[start]) if np.isfinite(steps[start]) else None
    yield Finding(
        id="dynamics.grad_norm_explosion",
        severity=Severity.HIGH if lasting else Severity.LOW,
        title=f"The gradient norm jumps from about {base:.3g} to {peak:.3g}"
        + ("" if at is None else f" at step {at}"),
        detail="It stays there." if lasting else "It comes back at once.",
        fix="Lower the learning rate and keep max_grad_norm at 1.0."
        if lasting
        else "Look at the rows of that step if it comes again.",
        evidence={
            "step": at,
            "rolling_median": base,
            "peak": peak,
            "logs": int(blown.sum()),
            "stretches": len(stretches),
        },
    )
