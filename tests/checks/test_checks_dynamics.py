"""Checks that read the log: healthy runs, dead runs, short ones, and the statistics."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_checks._series import (
    longest_run,
    mad,
    median_of_three,
    rising,
    runs,
    trailing,
    trend,
)
from gradian_checks.dynamics.always_clipping import always_clipping
from gradian_checks.dynamics.grad_norm_explosion import grad_norm_explosion
from gradian_checks.dynamics.initial_loss_too_high import initial_loss_too_high
from gradian_checks.dynamics.loss_plateau import loss_plateau
from gradian_checks.dynamics.loss_scale_mismatch import loss_scale_mismatch
from gradian_checks.dynamics.loss_spike import loss_spike
from gradian_checks.dynamics.lr_rewarm_on_resume import lr_rewarm_on_resume
from gradian_checks.dynamics.lr_schedule_incomplete import lr_schedule_incomplete
from gradian_checks.dynamics.nan_loss import nan_loss
from gradian_checks.dynamics.no_loss_logged import no_loss_logged
from gradian_checks.dynamics.overfitting import overfitting
from gradian_checks.dynamics.too_few_steps import too_few_steps
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import log, rows, training
from gradian_core.findings import Severity

NAN, INF = "nan", "inf"
INFO, LOW, MEDIUM = Severity.INFO, Severity.LOW, Severity.MEDIUM
HIGH, CRITICAL = Severity.HIGH, Severity.CRITICAL
ALL = (
    always_clipping,
    grad_norm_explosion,
    initial_loss_too_high,
    loss_plateau,
    loss_scale_mismatch,
    loss_spike,
    lr_rewarm_on_resume,
    lr_schedule_incomplete,
    nan_loss,
    no_loss_logged,
    overfitting,
    too_few_steps,
)


def one(check, *args, **facts):
    found = list(check(log=log(*args), **facts) if args else check(**facts))
    assert len(found) <= 1
    return found[0] if found else None


def level(check, **facts):
    found = one(check, **facts)
    return None if found is None else found.severity


def noisy(values, scale: float = 0.03, seed: int = 3) -> list[float]:
    """Return values with noise in proportion to them."""
    factors = np.exp(scale * np.random.default_rng(seed).normal(size=len(values)))
    return [float(v * f) for v, f in zip(values, factors, strict=True)]


def healthy(n: int = 200, seed: int = 3, epochs: float = 2.0):
    """Return the log of an ordinary LoRA run: fast drop, then slow, with warmup and evaluation."""
    x = np.arange(n)
    loss = noisy(1.1 + 1.2 * np.exp(-x / 12), 0.04, seed)
    norm = noisy(0.5 + 1.5 * np.exp(-x / 8), 0.2, seed + 1)
    rate = [2e-4 * min(i / 5, (n - i) / (n - 5)) for i in range(n)]
    evals = [(round(n * k / 5), 1.15 + 0.1 / k) for k in range(1, 6)]
    return log(loss, grad_norm=norm, learning_rate=rate, eval=evals, epochs=epochs)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("check", ALL, ids=lambda check: check.name)
def test_healthy_runs_are_clean(check, seed: int) -> None:
    settings = training(max_grad_norm=1.0, lr_scheduler_type="linear", warmup_steps=5)
    wants = {"training": settings} if "training" in check.wants else {}
    assert one(check, log=healthy(seed=seed), **wants) is None


@pytest.mark.parametrize("check", [c for c in ALL if c is not no_loss_logged], ids=lambda c: c.name)
def test_a_log_without_losses_is_not_assessed(check) -> None:
    closing = {"train_loss": 0.97, "train_runtime": 10.0}
    for steps in (None, 768):
        facts = dataclasses.replace(log(closing=closing), global_step=steps, max_steps=steps)
        with pytest.raises(NotAssessed):
            one(check, log=facts)


@pytest.mark.parametrize(
    "check", [loss_spike, loss_plateau, grad_norm_explosion, overfitting, always_clipping]
)
def test_one_point_is_not_assessed(check) -> None:
    facts = log([9.07], grad_norm=[0.84], learning_rate=[2e-5], steps=[5], global_step=6)
    wants = {"training": training()} if "training" in check.wants else {}
    with pytest.raises(NotAssessed):
        one(check, log=facts, **wants)


# --- nan_loss


@pytest.mark.parametrize(
    "facts",
    [
        log([2.0, NAN, 1.9]),
        log([2.0, INF]),
        log([NAN]),
        log([1.9, 0.0, 0.0], grad_norm=[1.0, NAN, NAN]),
        log([1.9, 0.0, 0.0], grad_norm=[1.0, 0.0, 0.0]),
        log([0.0, 0.0, 0.0], grad_norm=[0.0, 0.0, 0.0]),
        log([14577.9766, 0.0], grad_norm=[NAN, NAN], steps=[10, 20]),
        log([1.9] * 12, grad_norm=[1.0] * 8 + [INF] * 3 + [1.0]),
        log([1.2, 0.8, 0.0, 0.0, 0.0], grad_norm=[1.0] * 5),
        log([1.2, 0.8, 0.0, 0.0, 0.0]),
    ],
)
def test_dead_runs(facts) -> None:
    assert level(nan_loss, log=facts) is CRITICAL


@pytest.mark.parametrize(
    ("facts", "severity"),
    [
        (log([2.0, 1.9], eval=[(1, NAN), (2, 1.8)]), HIGH),
        (log([2.0] * 20, grad_norm=[1.0] * 10 + [INF] + [1.0] * 9), INFO),
        (log([2.0] * 20, grad_norm=[INF] * 4 + [1.0] * 16), INFO),
        (log([2.0] * 20, grad_norm=[1.0] * 10 + [NAN] * 2 + [1.0] * 8), INFO),
        (log([2.0, None, 1.8, None]), None),  # a missing loss is no NaN
        (log([2.0, 0.0, 1.8], grad_norm=[1.0, 0.0, 1.0]), None),
        # learnt by heart: four decimals are logged, and the loss goes through small ones
        (log([0.2, 0.02, 0.003, 0.0002, 0.0, 0.0, 0.0, 0.0], grad_norm=[0.1] * 8), None),
    ],
)
def test_not_dead(facts, severity) -> None:
    assert level(nan_loss, log=facts) == severity


def test_first_bad_step_is_named() -> None:
    found = one(nan_loss, log=log([2.0, 1.9, NAN, NAN], steps=[10, 20, 30, 40]))
    assert found is not None
    assert "step 30" in found.title
    assert found.evidence["first_step"] == 30


# --- too_few_steps


@pytest.mark.parametrize(
    ("steps", "severity"),
    [(6, HIGH), (19, HIGH), (20, MEDIUM), (49, MEDIUM), (50, LOW), (99, LOW), (100, None)],
)
def test_too_few_steps(steps: int, severity) -> None:
    assert level(too_few_steps, log=log([1.0] * steps)) == severity


def test_smoke_tests_are_told() -> None:
    found = one(too_few_steps, log=log([1.0] * 60), training=training(max_steps=60))
    assert found is not None
    assert "smoke test" in found.detail
    found = one(
        too_few_steps, log=log([1.0] * 6), training=training(max_steps=-1), examples=rows(8)
    )
    assert found is not None
    assert found.evidence["rows"] == 8


def test_steps_of_a_piece_of_a_log() -> None:
    piece = dataclasses.replace(log([1.0, 0.0]), max_steps=None)
    for facts in (piece, dataclasses.replace(piece, global_step=None)):
        with pytest.raises(NotAssessed):
            one(too_few_steps, log=facts)
    ended = dataclasses.replace(piece, finished=True)
    assert level(too_few_steps, log=ended) is HIGH


# --- no_loss_logged


def test_no_loss_logged() -> None:
    closed = log(global_step=768, max_steps=768, closing={"train_loss": 0.97})
    found = one(no_loss_logged, log=closed, training=training(logging_steps=996))
    assert found is not None
    assert found.severity is LOW
    assert "996" in found.title
    assert "0.97" in found.detail
    assert one(no_loss_logged, log=closed) is not None
    for facts in (log([2.0]), log([NAN])):
        assert one(no_loss_logged, log=facts) is None


# --- statistics

finite = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=60).map(np.array)


@given(finite, st.integers(1, 20), st.integers(1, 8))
def test_trailing_looks_back_only(values, window: int, least: int) -> None:
    centre, spread = trailing(values, window, least)
    for i in range(len(values)):
        behind = values[max(0, i - window) : i]
        if i < least:
            assert np.isnan(centre[i])
        else:
            assert centre[i] == np.median(behind)
            assert spread[i] == pytest.approx(mad(behind))


@given(finite)
def test_median_of_three(values) -> None:
    smooth = median_of_three(values)
    assert len(smooth) == len(values)
    for i in range(1, len(values) - 1):
        assert smooth[i] == np.median(values[i - 1 : i + 2])


@given(st.lists(st.booleans(), max_size=60))
def test_runs(flags: list[bool]) -> None:
    mask = np.array(flags, np.bool_)
    spans = runs(mask)
    rebuilt = np.zeros_like(mask)
    for start, end in spans:
        rebuilt[start:end] = True
        assert end == len(mask) or not mask[end]
    assert (rebuilt == mask).all()
    text = "".join("x" if f else " " for f in flags)
    assert longest_run(mask) == max(map(len, text.split(" ")), default=0)


def test_trend() -> None:
    change, certainty = trend(np.linspace(2, 1, 50))
    assert change == pytest.approx(-1)
    assert certainty < -5
    change, certainty = trend(np.linspace(2, 1, 5000))
    assert change == pytest.approx(-1, abs=1e-3)
    noise = np.random.default_rng(0).normal(size=200)
    assert abs(trend(noise)[1]) < 2.6
    assert trend(np.array([1.0, 2.0])) == (0.0, 0.0)


def test_rising() -> None:
    assert rising(np.linspace(1, 3, 30), 2.0)
    assert not rising(np.linspace(1, 1.5, 30), 2.0)
    assert not rising(np.array([1.0, 9.0]), 2.0)
