"""Eval losses of a handful of rows move by chance."""

from __future__ import annotations

import pytest

from gradian_checks.config.overtraining import overtraining
from gradian_checks.dynamics.overfitting import overfitting
from gradian_core.audit.collect_log import collect_log
from gradian_core.audit.samples import rows, training
from gradian_core.runs.artifact import TrainerLog

LOSSES = [1.6, 1.4, 1.5, 1.7, 1.9]


def log(eval_rows=None, rise=1.0, name="eval"):
    records = [{"step": i, "epoch": i / 50, "loss": 2.0 - 0.015 * i} for i in range(1, 101)]
    for i, loss in enumerate(LOSSES, 1):
        value = 1.4 + (loss - 1.4) * rise if i > 2 else loss
        record = {"step": 20 * i, "epoch": 0.4 * i, f"{name}_loss": value}
        if eval_rows is not None:
            rate = round(eval_rows / 1.2345, 3)
            record |= {f"{name}_runtime": 1.2345, f"{name}_samples_per_second": rate}
        records.append(record)
    return collect_log(TrainerLog(records=tuple(records), global_step=100, max_steps=100))


@pytest.mark.parametrize(
    ("eval_rows", "rise", "severity"),
    [(None, 1, "high"), (30, 1, "high"), (29, 1, "medium"), (30, 0.2, "medium"), (1, 0.2, "low")],
)
def test_overfitting_is_one_level_lower(eval_rows, rise, severity):
    [found] = overfitting(log=log(eval_rows, rise))
    assert found.severity == severity
    assert ("it may be chance" in found.detail) == (eval_rows in {1, 29})
    assert found.evidence["eval_rows"] == eval_rows


def test_the_eval_set_itself_counts_before_the_log():
    [found] = overfitting(log=log(1000), eval_examples=rows(n=12))
    assert found.severity == "medium"


def test_rows_of_a_named_eval_set():
    assert log(25, name="eval_law").eval_rows == 25


@pytest.mark.parametrize(("eval_rows", "severity"), [(300, "medium"), (10, "low")])
def test_overtraining_by_the_eval_loss(eval_rows, severity):
    settings = training(num_train_epochs=2)
    [found] = overtraining(training=settings, log=log(eval_rows), examples=rows(n=2000))
    assert found.severity == severity


def test_few_eval_rows_soften_no_count_of_epochs():
    settings = training(num_train_epochs=12)
    [found] = overtraining(training=settings, log=None, eval_examples=rows(n=5))
    assert found.severity == "high"
