"""A trainer's log in columns."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gradian_core.audit.collect_log import collect_log
from gradian_core.audit.samples import log
from gradian_core.runs.artifact import TrainerLog


def collect(*records, **more):
    return collect_log(TrainerLog(records=records, **more))


def test_records_by_kind():
    facts = collect(
        {"step": 10, "epoch": 0.5, "loss": 2.5, "grad_norm": 1.0, "learning_rate": 1e-4},
        {"step": 10, "epoch": 0.5, "eval_loss": 2.25, "eval_runtime": 3},
        {"step": 20, "epoch": 1.0, "loss": 2.0, "eval_loss": 2.125},
        {"step": 20, "train_runtime": 7.0, "train_loss": 2.25, "total_flos": 5},
        {"step": 20, "epoch": 1.0},
        global_step=20,
        max_steps=30,
    )
    assert facts.step.tolist() == [10, 20]
    assert facts.loss.tolist() == [2.5, 2.0]
    assert facts.grad_norm.tolist()[0] == 1.0
    assert math.isnan(facts.grad_norm[1])
    assert facts.eval_step.tolist() == [10, 20]
    assert facts.eval_loss.tolist() == [2.25, 2.125]
    assert facts.train_loss == 2.25
    assert facts.extra["total_flos"] == 5
    assert (facts.global_step, facts.max_steps) == (20, 30)


@pytest.mark.parametrize(
    ("value", "number", "bad"),
    [
        (1, 1.0, False),
        ("1.5e-3", 0.0015, False),
        (float("nan"), None, True),
        ("nan", None, True),
        ("-Infinity", None, True),
        (10**400, None, True),
        (None, None, False),
        ("No log", None, False),
        (True, None, False),
        ([1], None, False),
    ],
    ids=str,
)
def test_what_counts_as_a_number_and_what_as_a_bad_one(value, number, bad):
    facts = collect({"step": 1, "loss": value, "grad_norm": 1.0})
    assert facts.loss_bad.tolist() == [bad]
    assert math.isnan(facts.loss[0]) if number is None else facts.loss[0] == number


@pytest.mark.parametrize(
    ("records", "losses"),
    [
        ([{"eval_a_loss": 1.0}, {"eval_b_loss": 2.0}, {"eval_b_loss": 3.0}], [2.0, 3.0]),
        ([{"eval_a_loss": 1.0, "eval_loss": 5.0}, {"eval_a_loss": 2.0}], [5.0]),
        ([{"eval_accuracy": 1.0}], []),
    ],
)
def test_the_main_evaluation(records, losses):
    assert collect(*records).eval_loss.tolist() == losses


def test_an_empty_log():
    facts = collect()
    assert len(facts.step) == len(facts.eval_step) == 0
    assert facts.loss_bad.dtype == np.bool_
    assert facts.train_loss is None


def test_columns_cannot_be_changed_by_a_check():
    facts = log([1.0, 2.0], eval=[(2, 1.5)])
    for name in ("step", "epoch", "loss", "loss_bad", "grad_norm", "eval_loss", "eval_bad"):
        assert not getattr(facts, name).flags.writeable


def test_samples_of_logs():
    facts = log(
        [3.0, None, 2.0],
        grad_norm=[1.0],
        learning_rate=[0.0, 1e-4, 0.0],
        steps=[10, 20, 30],
        eval=[(30, "nan")],
        epochs=3.0,
        closing={"train_loss": 2.5},
    )
    assert facts.epoch.tolist() == [1.0, 2.0, 3.0]
    assert math.isnan(facts.loss[1])
    assert facts.eval_bad.tolist() == [True]
    assert facts.train_loss == 2.5
    assert facts.global_step == facts.max_steps == 30


def test_a_hundred_thousand_entries_take_a_moment():
    records = tuple({"step": i, "loss": 1.0, "learning_rate": 1e-4} for i in range(100_000))
    assert len(collect_log(TrainerLog(records=records)).loss) == 100_000
