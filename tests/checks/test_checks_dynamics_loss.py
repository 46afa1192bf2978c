"""Checks on the course of the loss."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_checks.dynamics.initial_loss_too_high import initial_loss_too_high
from gradian_checks.dynamics.loss_plateau import loss_plateau
from gradian_checks.dynamics.loss_scale_mismatch import loss_scale_mismatch
from gradian_checks.dynamics.loss_spike import loss_spike
from gradian_checks.dynamics.overfitting import overfitting
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import adapter, log, tokenizer, training
from gradian_core.findings import Severity

NAN, INF = "nan", "inf"
INFO, LOW, MEDIUM = Severity.INFO, Severity.LOW, Severity.MEDIUM
HIGH, CRITICAL = Severity.HIGH, Severity.CRITICAL


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


# --- loss_spike

HOT = {"training": training(learning_rate=5e-4), "adapter": adapter(r=16, lora_alpha=32)}
COOL = {"training": training(learning_rate=2e-4), "adapter": adapter(r=16, lora_alpha=32)}
LONE = [*noisy([0.8] * 60), 4.27, *noisy([0.77] * 60, seed=4)]


def test_lone_spike_by_itself_is_nothing() -> None:
    assert one(loss_spike, LONE) is None
    assert one(loss_spike, LONE, **COOL) is None
    # a run that ends in a single wild value
    assert one(loss_spike, [*noisy([0.8] * 60), 4.0]) is None


def test_lone_spike_at_a_high_rate() -> None:
    found = one(loss_spike, LONE, **HOT)
    assert found is not None
    assert found.severity is MEDIUM
    assert found.title == "1 loss spike above 3x the median loss"
    assert found.evidence["steps"] == [61]


def test_lone_spike_with_clipped_gradients() -> None:
    settings = {"training": training(max_grad_norm=1.0)}
    for norm, severity in (([2.0] * 121, MEDIUM), ([0.5] * 121, None)):
        assert level(loss_spike, log=log(LONE, grad_norm=norm), **settings) == severity


def test_climb_that_stays() -> None:
    found = one(loss_spike, noisy([1.0] * 60) + noisy([2.2] * 60))
    assert found is not None
    assert found.severity is HIGH
    assert found.evidence["step"] == pytest.approx(61, abs=1)
    tail = one(loss_spike, noisy([1.0] * 60) + noisy([2.2] * 4))
    assert tail is not None
    assert tail.severity is HIGH


def test_climb_that_comes_back_is_info() -> None:
    values = noisy([1.0] * 100) + noisy([2.2] * 4) + noisy([1.0] * 100, seed=5)
    assert level(loss_spike, log=log(values)) is INFO
    slow = noisy([1.0] * 100) + noisy([2.2] * 30) + noisy([1.0] * 100, seed=5)
    assert level(loss_spike, log=log(slow)) is HIGH


def test_no_climbs() -> None:
    stairs = noisy([1.4] * 60) + noisy([0.9] * 60) + noisy([0.5] * 60)  # borders of epochs
    assert one(loss_spike, stairs) is None
    wild = [float(v) for v in np.random.default_rng(1).gamma(2.0, 0.5, 400)]  # batch of one
    assert one(loss_spike, wild) is None
    small = noisy([0.01] * 60) + noisy([0.03] * 60)  # learnt by heart: ratios mean nothing
    assert one(loss_spike, small) is None
    mild = noisy([1.0] * 60) + noisy([1.35] * 60)
    assert one(loss_spike, mild) is None


@given(st.lists(st.floats(0.01, 20), min_size=10, max_size=120))
def test_a_loss_that_only_falls_has_no_spike(values: list[float]) -> None:
    assert one(loss_spike, sorted(values, reverse=True), **HOT) is None


def test_spike_needs_ten_losses() -> None:
    with pytest.raises(NotAssessed, match="9 losses"):
        one(loss_spike, [1.0] * 9)


# --- loss_plateau


def test_plateau() -> None:
    flat = noisy([1.9] * 100)
    assert one(loss_plateau, flat) is not None
    assert level(loss_plateau, log=log(flat)) is MEDIUM
    for drop, fires in ((0.02, True), (0.06, False)):
        values = [1.9 * (1 - drop * i / 99) for i in range(100)]
        assert (one(loss_plateau, values) is not None) is fires


@pytest.mark.parametrize(
    "values",
    [
        noisy(0.3 + 2.1 * np.exp(-np.arange(60) / 4)),  # converged on boilerplate
        [2.4] * 3 + noisy([0.33] * 57),
        noisy([0.3] * 100),  # a base model that knows the task
        noisy([1.9] * 30) + noisy([1.2] * 70),
    ],
)
def test_flat_after_a_drop_has_converged(values: list[float]) -> None:
    assert one(loss_plateau, values) is None


def test_falling_eval_loss_is_learning() -> None:
    flat = log(noisy([1.9] * 100), eval=[(20, 0.9020), (60, 0.88), (100, 0.87)])
    assert one(loss_plateau, log=flat) is None
    still = log(noisy([1.9] * 100), eval=[(20, 1.90), (60, 1.89), (100, 1.89)])
    assert one(loss_plateau, log=still) is not None


@pytest.mark.parametrize(
    "facts",
    [
        log(noisy([1.9] * 40)),  # 40 steps
        log(noisy([1.9] * 12), steps=range(500, 6500, 500), global_step=1200),
        log(noisy([1.9] * 100), learning_rate=[0.0] * 100),
        log([2.0, 1.9, NAN, NAN] * 20),
        log(noisy([1.0] * 60) + noisy([2.2] * 60)),
    ],
)
def test_plateau_is_not_judged(facts) -> None:
    if facts.step[0] > 1:
        facts = dataclasses.replace(facts, step=facts.step + 2000)
    with pytest.raises(NotAssessed):
        one(loss_plateau, log=facts)


def test_plateau_counts_steps_after_warmup() -> None:
    flat = log(noisy([1.9] * 80))
    assert one(loss_plateau, log=flat, training=training(warmup_steps=10)) is not None
    with pytest.raises(NotAssessed):
        one(loss_plateau, log=flat, training=training(warmup_steps=40))


# --- overfitting


def evaluated(values, train=None, **kwargs):
    n = len(values)
    steps = [20 * (i + 1) for i in range(n)]
    loss = train or [2.0 - 0.01 * i for i in range(20 * n)]
    return log(loss, eval=list(zip(steps, values, strict=True)), **kwargs)


@pytest.mark.parametrize(
    ("values", "severity"),
    [
        ([1.0, 0.9, 0.926], None),
        ([1.0, 0.9, 0.946], MEDIUM),
        ([1.0, 0.9, 1.036], HIGH),
        ([1.0, 0.9, 1.2, 0.91], None),  # it came back
        ([1.0, 0.95, 0.92, 0.9, 0.96], None),  # the best is at 80%
        ([0.2299, 0.2189, 0.2159, 0.2168, 0.2143, 0.2092, 0.2170, 0.2148, 0.2154], None),
    ],
)
def test_overfitting(values, severity) -> None:
    assert level(overfitting, log=evaluated(values)) == severity


def test_divergence_is_not_overfitting() -> None:
    rising_loss = [1.0 + 0.02 * i for i in range(80)]
    assert one(overfitting, log=evaluated([1.0, 0.9, 1.2, 1.6], rising_loss)) is None


def test_overfitting_is_not_judged() -> None:
    scaled = evaluated([0.35, 0.3, 0.33, 0.36], [5.4 - 0.001 * i for i in range(80)])
    few = evaluated([0.9, 1.5])
    bare = log([], eval=[(20, 1.0), (40, 0.9), (60, 1.3)])
    for facts in (scaled, few, bare):
        with pytest.raises(NotAssessed):
            one(overfitting, log=facts)


# --- loss_scale_mismatch


def test_loss_scale_of_a_real_run() -> None:
    facts = log(
        [284.87, 161.25, 9.90, 5.39, 5.18, 5.02],
        eval=[(1, 15.44), (2, 2.38), (3, 0.347), (4, 0.3185), (5, 0.3077), (6, 0.3038)],
    )
    for size, named in ((16, True), (4, False), (None, False)):
        given = training(**({} if size is None else {"gradient_accumulation_steps": size}))
        found = one(loss_scale_mismatch, log=facts, training=given)
        assert found is not None
        assert found.severity is MEDIUM
        assert found.evidence["ratio"] == pytest.approx(16.8, abs=0.2)
        assert ("gradient_accumulation_steps=16" in found.detail) is named


@pytest.mark.parametrize(
    ("train", "held", "fires"),
    [
        ([1.3, 1.2, 1.1], [1.4, 1.3, 1.2], False),
        ([0.33, 0.15, 0.09, 0.07, 0.06], [0.22, 0.21, 0.21, 0.21, 0.21], False),  # overfitting
        ([3.1, 3.1, 3.1], [1.0, 1.0, 1.0], True),
        ([2.9, 2.9, 2.9], [1.0, 1.0, 1.0], False),
        ([0.3, 0.3, 0.3], [1.0, 1.0, 1.0], True),
        ([0.3, 0.3, 0.3], [0.8, 1.0, 1.0], False),  # alike at first
        ([9.0, 1.2, 1.1], [1.0, 1.0, 1.0], False),  # a mean over a steep start
    ],
)
def test_loss_scale(train, held, fires: bool) -> None:
    facts = log(train, eval=[(i + 1, v) for i, v in enumerate(held)])
    assert (one(loss_scale_mismatch, log=facts) is not None) is fires


def test_loss_scale_is_not_judged() -> None:
    for facts in (log([5.0] * 10), log([5.0] * 10, eval=[(10, 0.3)])):
        with pytest.raises(NotAssessed):
            one(loss_scale_mismatch, log=facts)


def test_stale_losses_are_not_compared() -> None:
    # the last logged loss is far from the evaluations
    facts = log([9.0, 8.0, 7.0], steps=[1, 2, 3], eval=[(200, 1.0), (300, 0.9), (400, 0.8)])
    assert one(loss_scale_mismatch, log=facts) is None


# --- initial_loss_too_high


def test_initial_loss() -> None:
    small = tokenizer()
    chance = math.log(small.vocab_size)
    for loss, severity in ((chance * 1.01, HIGH), (chance * 0.81, MEDIUM), (chance * 0.79, None)):
        assert level(initial_loss_too_high, log=log([loss, 1.0]), tokenizer=small) == severity


@pytest.mark.parametrize(
    ("loss", "model", "severity"),
    [
        (9.07, "microsoft/DialoGPT-small", MEDIUM),  # ln 50257 = 10.8
        (9.07, None, MEDIUM),
        (12.61, "meta-llama/Llama-3.2-1B", HIGH),
        (12.61, None, HIGH),
        (11.9, "meta-llama/Llama-3.2-1B", HIGH),
        (11.9, None, MEDIUM),
        (4.05, None, None),
        (8.2, None, None),
    ],
)
def test_initial_loss_by_family(loss: float, model: str | None, severity) -> None:
    facts = {"log": log([loss, 5.0]), "adapter": adapter(base_model_name_or_path=model)}
    assert level(initial_loss_too_high, **facts) == severity


def test_initial_loss_on_another_scale() -> None:
    # 2.0 nats, added up over 16 passes
    right = log([32.0, 24.0, 20.0, 17.0], eval=[(2, 1.5), (3, 1.25), (4, 1.06)])
    given = training(gradient_accumulation_steps=16)
    assert one(initial_loss_too_high, log=right, training=given) is None
    found = one(initial_loss_too_high, log=log([32.0, 24.0]), training=given)
    assert found is not None
    assert found.severity is MEDIUM
    assert "added up" in found.detail.lower()


def test_eval_at_the_start_counts() -> None:
    facts = log([284.9, 161.2, 9.9], eval=[(1, 15.4), (2, 2.4), (3, 0.35)])
    found = one(initial_loss_too_high, log=facts)
    assert found is not None
    assert found.evidence["kind"] == "eval"
    assert found.evidence["first_loss"] == pytest.approx(15.4)


def test_late_losses_are_not_judged() -> None:
    with pytest.raises(NotAssessed):
        one(initial_loss_too_high, log=log([14.0], steps=[400], global_step=1000))
