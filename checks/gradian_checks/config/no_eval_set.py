"""``config.no_eval_set``."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._read import flag, origin, text
from gradian_checks._steps import epochs
from gradian_core.audit import samples
from gradian_core.audit.facts import ExampleFacts, LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_TINY = 100
_MANY_EPOCHS = 3


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {"training": samples.training(has_eval_set=False, num_train_epochs=5)},
    clean=lambda: {"training": samples.training(has_eval_set=True)},
)
def no_eval_set(
    training: TrainingConfig, log: LogFacts | None = None, examples: ExampleFacts | None = None
) -> Iterator[Finding]:
    """No eval set configured.

    Why it matters: training loss falls whether a model learns or memorises. Only rows that it has
    not seen tell the two apart, and tell when to stop.

    How to fix: hold out 5 to 10% of the rows (``val_set_size: 0.05`` in axolotl, ``val_size`` in
    LLaMA-Factory) and evaluate a few times an epoch.

    Threshold: no eval set in the config *and* no eval loss in the log (low; medium for more than 3
    epochs; info below 100 rows, which are too few to hold any out).

    Not assessed: where neither config nor log tells.
    """
    if flag(training, "has_eval_set") or (log is not None and len(log.eval_step)):
        return
    strategy = text(training, "eval_strategy")
    if flag(training, "has_eval_set") is None:
        if strategy not in (None, "no"):
            return
        if strategy is None and (log is None or not (len(log.step) or log.extra)):
            raise NotAssessed("Whether there was an eval set is not recorded.")
    rows = None if examples is None else len(examples)
    done = epochs(training, log, rows)
    if rows is not None and rows < _TINY:
        severity = Severity.INFO
    elif done is not None and done[0] > _MANY_EPOCHS:
        severity = Severity.MEDIUM
    else:
        severity = Severity.LOW
    by = "has_eval_set" if flag(training, "has_eval_set") is False else "eval_strategy"
    yield Finding(
        id="config.no_eval_set",
        severity=severity,
        title="Nothing was held out: no eval loss was ever measured",
        detail="Overfitting cannot be seen in a training loss.",
        fix="Hold out 5% of the rows and evaluate a few times an epoch.",
        evidence={
            "source": origin(training, by) if by in training.values else "no eval loss in the log",
            "epochs": None if done is None else done[0],
            "rows": rows,
        },
    )
