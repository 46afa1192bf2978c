"""``dynamics.loss_spike``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gradian_checks._clipping import clipped_share
from gradian_checks._rates import probably_too_high
from gradian_checks._series import trailing
from gradian_checks._trouble import climbs, losses
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

_LEAST = 10
_LONE = 3.0
_MAD = 5.0
_PINNED = 0.9


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {"log": samples.log([1.0, 1.02] * 20 + [2.1, 2.3, 2.2, 2.4] * 5)},
    clean=lambda: {"log": samples.log([0.8, 0.82] * 20 + [4.27] + [0.77, 0.79] * 20)},
)
def loss_spike(
    log: LogFacts, training: TrainingConfig | None = None, adapter: AdapterInfo | None = None
) -> Iterator[Finding]:
    """Sudden loss spikes.

    Why it matters: a loss that jumps up and stays there means that a step, or a few, undid what
    was learnt before.

    How to fix: a tenth of the learning rate, gradient clipping, a larger effective batch.

    Threshold: the median of three logged losses above 1.5 times the rolling median and 5 median
    absolute deviations above it, not back within 5% of the run (high), or back (info). A single
    loss above 3 times the rolling median says little by itself, since one hard example does it
    with small batches; it counts (medium) where the learning rate is too high as well, or more
    than 90% of the gradient norms are clipped. Losses fall in stairs at the borders of epochs,
    which is no spike.

    Not assessed: with fewer than 10 logged losses.
    """
    steps, loss = losses(log, _LEAST)
    found = climbs(loss)
    stayed = [climb for climb in found if climb.stayed]
    if stayed:
        worst = max(stayed, key=lambda climb: climb.top / climb.base)
        yield Finding(
            id="dynamics.loss_spike",
            severity=Severity.HIGH,
            title=f"The loss climbs from {worst.base:.3g} to {worst.top:.3g} at step "
            f"{_at(steps, worst.start)} and stays there",
            detail="It does not come back within 5% of the run.",
            fix="Train again with a tenth of the learning rate, or from the checkpoint before it.",
            evidence={
                "step": _at(steps, worst.start),
                "base": worst.base,
                "top": worst.top,
                "climbs": len(found),
            },
        )
        return
    lone = _lone(loss)
    hot = probably_too_high(training, adapter, log)
    clipped = clipped_share(log, training)
    pinned = clipped is not None and clipped > _PINNED
    if len(lone) and (hot or pinned):
        count = len(lone)
        yield Finding(
            id="dynamics.loss_spike",
            severity=Severity.MEDIUM,
            title=f"{count} loss spike{'s' if count > 1 else ''} above 3x the median loss",
            detail="Single spikes are common, but "
            + ("the learning rate is high as well." if hot else "nearly all steps are clipped."),
            fix="Lower the learning rate, or make the effective batch larger.",
            evidence={
                "spikes": count,
                "steps": [_at(steps, int(i)) for i in lone[:20]],
                "highest": float(loss[lone].max()),
                "clipped_share": clipped,
            },
        )
    elif found:
        first = found[0]
        yield Finding(
            id="dynamics.loss_spike",
            severity=Severity.INFO,
            title=f"The loss rises to {first.top:.3g} at step {_at(steps, first.start)} and comes "
            "back",
            detail="It is back at its level within 5% of the run.",
            evidence={
                "step": _at(steps, first.start),
                "base": first.base,
                "top": first.top,
                "climbs": len(found),
            },
        )


def _lone(loss: NDArray[np.float64]) -> NDArray[np.intp]:
    base, spread = trailing(loss, 50, 5)
    with np.errstate(invalid="ignore"):
        return np.flatnonzero((loss > _LONE * base) & (loss - base > _MAD * spread))


def _at(steps: NDArray[np.float64], position: int) -> int | None:
    return int(steps[position]) if np.isfinite(steps[position]) else None
