"""``config.overtraining``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._read import short
from gradian_checks._steps import FEW_EVAL_ROWS, epochs, eval_rows, row_count
from gradian_core.audit import samples
from gradian_core.audit.facts import ExampleFacts, LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_BANDS = ((10.0, Severity.HIGH), (5.0, Severity.MEDIUM), (3.0, Severity.LOW))
_TINY = 100
_SMALL = 1000
_SLACK = 0.02
_LEAST_EVALS = 3


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {
        "training": samples.training(num_train_epochs=12),
        "examples": samples.rows(n=800),
    },
    clean=lambda: {
        "training": samples.training(num_train_epochs=2),
        "examples": samples.rows(n=800),
    },
)
def overtraining(
    training: TrainingConfig,
    examples: ExampleFacts | None = None,
    log: LogFacts | None = None,
    eval_examples: ExampleFacts | None = None,
) -> Iterator[Finding]:
    """Too many epochs for the dataset size.

    Why it matters: a row that is seen ten times is learnt by heart. The model repeats it, and
    forgets what it could do before.

    How to fix: 1 to 3 epochs; with an eval set, keep the checkpoint with the lowest eval loss.

    Threshold: more than 3 epochs low, more than 5 medium, more than 10 high; 3 epochs over 100 to
    1,000 rows low. Below 100 rows, which are trained for their style, only more than 10 (medium).
    With three evaluations or more: the best before half of the run, and at least an epoch after it
    (medium; low on an eval set of fewer than 30 rows). The epochs that ran count, and
    ``max_steps`` wins over those asked for. Up to about four repeats are as good as new data for
    pretraining (Muennighoff et al. 2023).

    Not assessed: where the number of epochs is not known.
    """
    rows = row_count(examples, log)
    done = epochs(training, log, rows)
    if done is None:
        raise NotAssessed("The number of epochs is not recorded.")
    count, source = done
    severity = _by_count(count, rows)
    late = None if log is None else _trained_past_best(log)
    if late is not None:
        shown = eval_rows(eval_examples, log)
        few = shown is not None and shown < FEW_EVAL_ROWS
        by_loss = Severity.LOW if few else Severity.MEDIUM
        severity = by_loss if severity is None else min(severity, by_loss, key=lambda s: s.rank)
    if severity is None:
        return
    over = f" over {rows:,} rows" if rows else ""
    best = "" if late is None else f" The best eval loss was at epoch {short(late)}."
    yield Finding(
        id="config.overtraining",
        severity=severity,
        title=f"{short(round(count, 2))} epochs{over} risk memorising the training data",
        detail=f"Each row is seen about {max(round(count), 1)} times.{best}",
        fix=(
            f"Keep the checkpoint near epoch {short(late)}, or train that long."
            if late is not None
            else f"Train for {'2 to 3' if count > _BANDS[-1][0] + _SLACK else '1 to 2'} epochs."
        ),
        evidence={
            "epochs": count,
            "source": source,
            "rows": rows,
            "best_eval_epoch": late,
        },
    )


def _by_count(count: float, rows: int | None) -> Severity | None:
    # the last batch of an epoch may be short or dropped: 2.99 epochs are 3, and so are 3.01
    if rows is not None and rows < _TINY:
        return Severity.MEDIUM if count > _BANDS[0][0] + _SLACK else None
    found = next((s for bound, s in _BANDS if count > bound + _SLACK), None)
    if found is None and rows is not None and rows <= _SMALL and count >= _BANDS[-1][0] - _SLACK:
        return Severity.LOW
    return found


def _trained_past_best(log: LogFacts) -> float | None:
    """Return the epoch of the best evaluation if it came early and training went on for long."""
    usable = np.isfinite(log.eval_loss) & np.isfinite(log.eval_epoch)
    loss, epoch = log.eval_loss[usable], log.eval_epoch[usable]
    if len(loss) < _LEAST_EVALS:
        return None
    best = float(epoch[int(loss.argmin())])
    end = float(np.nanmax(np.concatenate([epoch, log.epoch])))
    # an eval loss that has come to rest is not worse for the epochs after it
    worse = loss[-1] > loss.min() * 1.01
    return best if worse and best < end / 2 and end - best >= 1 else None
