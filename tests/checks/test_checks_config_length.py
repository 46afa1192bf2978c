"""Checks of how long a run was: steps, epochs, batches."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from gradian_checks._steps import effective_batch, epochs, planned_steps, row_count, warmup_steps
from gradian_checks.config.large_effective_batch import large_effective_batch
from gradian_checks.config.overtraining import overtraining
from gradian_checks.config.small_effective_batch import small_effective_batch
from gradian_checks.config.undertrained import undertrained
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import adapter, log, rows, training
from gradian_core.findings import Severity
from gradian_core.runs.artifact import Value

INFO, LOW, MEDIUM = Severity.INFO, Severity.LOW, Severity.MEDIUM
HIGH, CRITICAL = Severity.HIGH, Severity.CRITICAL


def one(check, **facts):
    found = list(check(**facts))
    assert len(found) <= 1
    return found[0] if found else None


def level(check, **facts):
    found = one(check, **facts)
    return None if found is None else found.severity


# --- overtraining


@pytest.mark.parametrize(
    ("count", "size", "severity"),
    [
        (1, 800, None),
        (2.9, 800, None),
        (3, 800, LOW),
        (2.99, 800, LOW),
        (3, 1000, LOW),
        (3, 1001, None),
        (3, 20_000, None),
        (3, None, None),
        (4, None, LOW),
        (4, 800, LOW),
        (5, 800, LOW),
        (6, 800, MEDIUM),
        (10, 800, MEDIUM),
        (12, 800, HIGH),
        (12, None, HIGH),
        (3, 8, None),
        (10, 99, None),
        (12, 99, MEDIUM),
    ],
)
def test_overtraining(count: float, size: int | None, severity: Severity | None) -> None:
    examples = None if size is None else _sized(size)
    found = level(overtraining, training=training(num_train_epochs=count), examples=examples)
    assert found == severity


def _sized(size: int):
    facts = rows(n=3)
    return dataclasses.replace(facts, content=np.zeros(size, np.uint64))


def test_max_steps_wins_over_epochs() -> None:
    capped = training(
        num_train_epochs=12,
        max_steps=100,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        world_size=1,
    )
    assert level(overtraining, training=capped, examples=_sized(800)) is None
    with pytest.raises(NotAssessed):
        one(overtraining, training=capped)


def test_epochs_that_ran_win() -> None:
    asked = training(num_train_epochs=12)
    assert level(overtraining, training=asked, log=log([1.0] * 9, epochs=0.9)) is None
    with pytest.raises(NotAssessed):
        one(overtraining, training=training())


def test_trained_past_the_best_evaluation() -> None:
    evals = [(25, 1.0), (50, 1.1), (75, 1.2), (100, 1.3)]
    facts = {"training": training(), "log": log([1.0] * 100, eval=evals, epochs=3.5)}
    found = one(overtraining, **facts)
    assert found is not None
    assert found.severity is MEDIUM
    assert found.evidence["best_eval_epoch"] == pytest.approx(0.875)
    # best late: only the count speaks
    late = [(25, 1.3), (50, 1.1), (75, 1.0), (100, 1.1)]
    facts["log"] = log([1.0] * 100, eval=late, epochs=3.5)
    assert level(overtraining, **facts) is LOW
    # best early, but less than an epoch after it
    facts["log"] = log([1.0] * 100, eval=evals, epochs=1.2)
    assert level(overtraining, **facts) is None
    # a flat eval loss is not worse for its best having come early
    flat = [(25, 1.0), (50, 1.004), (75, 1.003), (100, 1.005)]
    facts["log"] = log([1.0] * 100, eval=flat, epochs=2.5)
    assert level(overtraining, **facts) is None


# --- effective batch


@pytest.mark.parametrize(
    ("device", "accumulated", "world", "severity"),
    [
        (1, 1, 1, MEDIUM),
        (1, 1, None, MEDIUM),
        (1, 2, 1, LOW),
        (1, 4, 1, LOW),
        (2, 2, 1, LOW),
        (1, 5, 1, None),
        (1, 8, 1, None),
        (1, 1, 8, None),
    ],
)
def test_small_batch(device: int, accumulated: int, world: int | None, severity) -> None:
    settings = training(
        learning_rate=5e-4,
        per_device_train_batch_size=device,
        gradient_accumulation_steps=accumulated,
        **({} if world is None else {"world_size": world}),
    )
    assert level(small_effective_batch, training=settings, adapter=adapter()) == severity


def test_batch_of_one_at_a_calm_rate_is_low() -> None:
    base = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 1}
    for lr, severity in ((5e-5, LOW), (5.1e-5, MEDIUM)):
        given = training(learning_rate=lr, **base)
        assert level(small_effective_batch, training=given, adapter=adapter()) is severity
    assert level(small_effective_batch, training=training(**base)) is LOW


def test_packed_batches_hold_several_rows() -> None:
    base = {"learning_rate": 5e-4, "gradient_accumulation_steps": 1, "packing": True}
    two = training(per_device_train_batch_size=2, **base)
    assert level(small_effective_batch, training=two, adapter=adapter()) is None
    single = training(per_device_train_batch_size=1, **base)
    assert level(small_effective_batch, training=single, adapter=adapter()) is LOW


def test_large_batch() -> None:
    for size, severity in ((64, None), (65, LOW), (128, LOW)):
        given = training(total_train_batch_size=size)
        assert level(large_effective_batch, training=given) == severity
    full = training(total_train_batch_size=256, finetuning_type="full")
    assert level(large_effective_batch, training=full) is None


@pytest.mark.parametrize("check", [small_effective_batch, large_effective_batch])
def test_unknown_batch(check) -> None:
    with pytest.raises(NotAssessed):
        one(check, training=training())
    with pytest.raises(NotAssessed):
        one(check, training=training(per_device_train_batch_size=2))


CLOSING = {
    "train_runtime": 5980.6912,
    "train_samples_per_second": 14.427,
    "train_steps_per_second": 0.128,
    "train_loss": 0.97,
    "epoch": 2.9966,
}


def test_devices_from_the_throughput() -> None:
    closed = log(global_step=768, max_steps=768, closing=CLOSING)
    settings = training(per_device_train_batch_size=2, gradient_accumulation_steps=8)
    batch = effective_batch(settings, closed)
    assert batch is not None
    assert batch.size == 2 * 8 * 7
    assert not batch.lower_bound
    assert level(small_effective_batch, training=settings, log=closed) is None
    # without any setting the log still knows the product
    batch = effective_batch(None, closed)
    assert batch is not None
    assert batch.size == 112
    assert row_count(None, closed) == pytest.approx(28_793, rel=0.01)


def test_devices_are_not_invented() -> None:
    settings = training(per_device_train_batch_size=1, gradient_accumulation_steps=8)
    batch = effective_batch(settings, None)
    assert batch is not None
    assert batch.size == 8
    assert batch.lower_bound
    assert "assumed" in batch.parts


# --- lengths of runs


def test_epochs_are_carried_to_the_end_of_the_log() -> None:
    facts = log([1.0] * 20, steps=range(10, 201, 10), epochs=2.976, global_step=201)
    found = epochs(training(num_train_epochs=3), facts, None)
    assert found is not None
    assert found[0] == pytest.approx(2.99, abs=0.01)


def test_recorded_epochs_win_over_a_table_that_stops_short() -> None:
    table = dataclasses.replace(log([0.19, 0.02], steps=[100, 400], epochs=0.84), global_step=None)
    ran = training(num_train_epochs=Value(1.0, "README.md:80", "ran"), max_steps=-1)
    assert epochs(ran, table, None) == (1.0, "num_train_epochs")
    asked = training(num_train_epochs=1.0)
    found = epochs(asked, table, None)
    assert found is not None
    assert found[0] == pytest.approx(0.84)
    # ... unless the run is known to have stopped
    stopped = dataclasses.replace(table, global_step=400, max_steps=475)
    found = epochs(ran, stopped, None)
    assert found is not None
    assert found[0] == pytest.approx(0.84)


def test_planned_steps() -> None:
    settings = {
        "num_train_epochs": 3,
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 2,
    }
    assert planned_steps(training(**settings, world_size=1), None, 8) == 6
    assert planned_steps(training(**settings, world_size=1), None, 9) == 9
    assert planned_steps(training(**settings), None, 8) is None  # devices unknown
    assert planned_steps(training(**settings, world_size=1, packing=True), None, 8) is None
    assert planned_steps(training(**settings, max_steps=60), None, 8) == 60
    assert planned_steps(training(**settings, max_steps=-1, world_size=1), None, 8) == 6
    assert planned_steps(training(**settings), log([1.0] * 5, max_steps=7), 8) == 7


@pytest.mark.parametrize(
    ("settings", "total", "steps"),
    [
        ({}, 100, None),
        ({"warmup_steps": 0}, 100, 0),
        ({"warmup_steps": 20}, 100, 20),
        ({"warmup_steps": 20, "warmup_ratio": 0.5}, 100, 20),
        ({"warmup_steps": 0, "warmup_ratio": 0.05}, 100, 5),
        ({"warmup_steps": 0.1}, 100, 10),
        ({"warmup_ratio": 0.1}, None, 0.1),
        ({"warmup_ratio": 0.0}, None, 0.0),
    ],
)
def test_warmup_steps(settings: dict, total: int | None, steps: float | None) -> None:
    assert warmup_steps(training(**settings), total) == steps


# --- undertrained


def falling(start: float, end: float, n: int = 200, noise: float = 0.0):
    values = np.geomspace(start, end, n) + noise * np.random.default_rng(7).normal(size=n)
    return [float(v) for v in values]


def test_undertrained_while_falling() -> None:
    given = training(num_train_epochs=2)
    steep = log(falling(3, 0.7), epochs=2)
    found = one(undertrained, training=given, log=steep)
    assert found is not None
    assert found.severity is MEDIUM
    assert found.evidence["fall_over_last_fifth"] > 0.2
    flat = log(falling(3, 0.7, 100) + falling(0.7, 0.69, 100), epochs=2)
    assert level(undertrained, training=given, log=flat) is None
    noise = log([1.0 + 0.3 * math.sin(7.1 * i) for i in range(200)], epochs=2)
    assert level(undertrained, training=given, log=noise) is None


def test_falling_needs_ten_losses() -> None:
    given = training(num_train_epochs=Value(1.0, "README.md", "ran"))
    table = log([0.19, 0.11, 0.07, 0.02], steps=[100, 200, 300, 400], epochs=0.84)
    assert level(undertrained, training=given, log=dataclasses.replace(table, epochs_done=1.0)) is (
        None
    )
    single = log([9.07], steps=[500], epochs=2.5, global_step=600)
    assert level(undertrained, training=given, log=single) is None


def test_a_piece_of_a_log_is_not_judged() -> None:
    piece = dataclasses.replace(log([14577.9, 0.0], epochs=0.04), global_step=None, max_steps=None)
    with pytest.raises(NotAssessed, match="piece"):
        one(undertrained, training=training(), log=piece)


def test_less_than_an_epoch() -> None:
    part = log([1.0] * 60, epochs=0.67)
    found = one(undertrained, training=training(max_steps=60), log=part)
    assert found is not None
    assert found.severity is LOW
    assert "max_steps=60" in found.detail
    assert "90 steps" in found.fix
    long = log([1.0] * 1000, epochs=0.67)
    assert level(undertrained, training=training(), log=long) is None
    assert level(undertrained, training=training(), log=log([1.0] * 999, epochs=0.67)) is LOW
    assert level(undertrained, training=training(), log=log([1.0] * 60, epochs=0.99)) is None


def test_few_steps() -> None:
    for steps, severity in ((6, LOW), (49, LOW), (50, None)):
        facts = log([1.0] * steps, epochs=3)
        assert level(undertrained, training=training(), log=facts) == severity
    with pytest.raises(NotAssessed):
        one(undertrained, training=training())
