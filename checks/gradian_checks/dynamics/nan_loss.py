"""``dynamics.nan_loss``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._series import longest_run, runs
from gradian_checks._trouble import dead_records, silent_norms
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity

_IN_A_ROW = 3
_ALIVE = 0.05
_NAN = float("nan")


@check(
    severity=Severity.CRITICAL,
    since="0.1",
    trips=lambda: {
        "log": samples.log([1.9, 1.7, 0.0, 0.0], grad_norm=[1.2, 9.0, _NAN, _NAN]),
    },
    clean=lambda: {"log": samples.log([1.9, 1.7, 1.6, 1.5], grad_norm=[1.2, 1.1, 1.0, 0.9])},
)
def nan_loss(log: LogFacts) -> Iterator[Finding]:
    """NaN or inf loss.

    Why it matters: from the first NaN on nothing is learnt, and the adapter may be all NaN.
    transformers hides it: ``logging_nan_inf_filter`` writes a NaN loss as 0.0.

    How to fix: ``bf16: true`` instead of fp16, a lower learning rate, and a look for rows without
    any supervised token, whose loss is 0/0.

    Threshold: a loss that is NaN or infinite; a loss of exactly 0.0 twice together with a norm of
    zero, NaN or infinity (or once at the end of a run of such norms); three non-finite norms in a
    row after the first five steps; a loss that falls from above 0.05 to exactly 0.0 and stays there
    for three log lines (all critical). An eval loss of NaN is high. A lone overflow in fp16 is how
    a loss scaler works (info). A missing loss is not a NaN.

    Not assessed: where no loss, norm or eval loss was logged.
    """
    logged = np.isfinite(log.loss) | log.loss_bad | np.isfinite(log.grad_norm) | log.grad_bad
    if not logged.any() and not len(log.eval_loss):
        raise NotAssessed("No loss, gradient norm or eval loss was logged.")
    signs = _signs(log)
    evidence: dict[str, object] = {
        "bad_losses": int(log.loss_bad.sum()),
        "zero_losses": int((log.loss == 0.0).sum()),
        "non_finite_norms": int(log.grad_bad.sum()),
        "bad_eval_losses": int(log.eval_bad.sum()),
        "first_step": signs[0][1] if signs else None,
    }
    if signs:
        title, step = signs[0]
        yield Finding(
            id="dynamics.nan_loss",
            severity=Severity.CRITICAL,
            title=title + ("" if step is None else f", from step {step}"),
            detail="Nothing is learnt from there on, and the adapter may hold NaN.",
            fix="Train again in bf16, with a lower learning rate, without rows that have no "
            "supervised token.",
            evidence=evidence,
        )
    elif log.eval_bad.any():
        yield Finding(
            id="dynamics.nan_loss",
            severity=Severity.HIGH,
            title=f"{int(log.eval_bad.sum())} of {len(log.eval_bad)} eval losses are not finite",
            detail="Rows of the eval set without any supervised token do that.",
            fix="Look for eval rows whose answer is empty or cut off.",
            evidence=evidence,
        )
    elif log.grad_bad.any():
        yield Finding(
            id="dynamics.nan_loss",
            severity=Severity.INFO,
            title=f"{int(log.grad_bad.sum())} logged gradient norms are not finite",
            detail="Lone overflows are how the loss scaler of fp16 finds its scale.",
            evidence=evidence,
        )


def _signs(log: LogFacts) -> list[tuple[str, int | None]]:
    """Return ``(what, first step)`` of each sign that training is dead, best first."""
    found: list[tuple[str, int | None]] = []
    if log.loss_bad.any():
        found.append(("The training loss is NaN or infinite", _step(log, log.loss_bad)))
    dead = dead_records(log)
    if dead.sum() >= 2 or (dead.any() and longest_run(log.grad_bad) >= 2):
        what = "The training loss reads 0.0 with a gradient norm of zero or NaN"
        found.append((what, _step(log, dead)))
    if silent_norms(log) >= _IN_A_ROW:
        what = f"Gradient norms are not finite {silent_norms(log)} times in a row"
        found.append((what, _step(log, log.grad_bad)))
    for start, end in runs(log.loss == 0.0):
        # data learnt by heart goes through small losses on its way; a fall to zero at once is not
        if end - start >= _IN_A_ROW and start and log.loss[start - 1] > _ALIVE:
            mask = np.zeros(len(log.loss), np.bool_)
            mask[start] = True
            found.append(("The training loss fell to exactly 0.0 at once", _step(log, mask)))
            break
    return found


def _step(log: LogFacts, mask: np.ndarray) -> int | None:
    step = log.step[int(np.argmax(mask))]
    return int(step) if np.isfinite(step) else None
