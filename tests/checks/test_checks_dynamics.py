"""Checks that read the log: thresholds, what healthy logs look like, and what is not judged."""

from __future__ import annotations

import dataclasses
import math

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
from gradian_core.audit.samples import adapter, log, rows, tokenizer, training
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


# --- grad_norm_explosion


def test_explosion() -> None:
    base = noisy([0.5] * 30, 0.2)
    for tail, severity in (
        ([8.0, 30.0, 90.0], HIGH),
        ([8.0], HIGH),  # the end of the run
        ([8.0, 9.0, 9.0, *noisy([0.5] * 10)], HIGH),
        ([8.0, 9.0, *noisy([0.5] * 10)], LOW),
        ([8.0, *noisy([0.5] * 10)], LOW),
        ([4.9] * 5, None),  # below 5
    ):
        facts = log([1.0] * (30 + len(tail)), grad_norm=base + tail)
        assert level(grad_norm_explosion, log=facts) == severity


def test_no_explosion() -> None:
    for norm in (
        [197.5, 422.0, 3.3, 2.2, 2.7, 2.7, 2.6, 2.5, 2.4, 2.5],  # falls from a high start
        list(np.linspace(0.26, 0.42, 60)),
        list(np.linspace(0.65, 1.79, 20)),
        noisy([3.0] * 60, 0.5),
        list(np.geomspace(1, 60, 120)),  # creeps
    ):
        assert one(grad_norm_explosion, log=log([1.0] * len(norm), grad_norm=norm)) is None
    with pytest.raises(NotAssessed, match="no gradient norms"):
        one(grad_norm_explosion, [1.0] * 20)


# --- always_clipping


def clipping(norm, limit: float | None = 1.0, **settings):
    facts = log([1.0] * len(norm), grad_norm=norm)
    given = training(**({} if limit is None else {"max_grad_norm": limit}), **settings)
    return level(always_clipping, log=facts, training=given)


def test_clipped_share() -> None:
    for clipped, severity in ((90, None), (91, LOW), (94, LOW), (95, MEDIUM), (97, MEDIUM)):
        norm = [1.4, 0.6] * (100 - clipped) + [1.4] * (2 * clipped - 100)
        assert clipping(norm) == severity


def test_clipping_with_norms_that_double() -> None:
    # 91 of 100 are clipped, and the last third is twice the first
    norm = [1.5] * 30 + [0.5] * 9 + list(np.linspace(1.5, 4, 61))
    assert clipping(norm) is MEDIUM
    assert clipping([0.5 * n for n in norm], limit=0.5) is MEDIUM


def test_tight_thresholds_are_info() -> None:
    assert clipping([0.9] * 60, limit=0.3) is INFO
    assert clipping([0.9] * 60, limit=1.0) is None


def test_warmup_is_left_out() -> None:
    norm = [0.3] * 30 + [3.0] * 30  # calm in the warmup, clipped after it
    assert clipping(norm) is None
    assert clipping(norm, warmup_steps=30) is MEDIUM
    rate = [min(i / 30, 1.0) for i in range(1, 61)]
    facts = log([1.0] * 60, grad_norm=norm, learning_rate=rate)
    assert level(always_clipping, log=facts, training=training(max_grad_norm=1.0)) is MEDIUM


def test_few_norms() -> None:
    assert clipping([197.5, 422.0, 3.3, 2.18, 2.7, 2.68]) is LOW
    for norm in ([1.5] * 9, [3.0] * 4, []):
        with pytest.raises(NotAssessed):
            clipping(norm)


def test_clip_threshold() -> None:
    for tool in ("transformers", "trl", "axolotl", "llamafactory", "unsloth"):
        facts = log([1.0] * 20, grad_norm=[2.0] * 20)
        assert level(always_clipping, log=facts, training=training(tool)) is MEDIUM
    for settings in (training("mlx-lm"), training(max_grad_norm=0.0), None):
        with pytest.raises(NotAssessed):
            one(always_clipping, log=facts, training=settings)


def test_norms_of_a_real_fp16_run() -> None:
    norm = [0.70, 0.65, 0.66, 0.79, 0.89, 0.86, 0.94, 1.12, 1.16, 1.27]
    norm += [1.41, 1.25, 1.29, 1.37, 1.44, 1.79, 1.51, 1.57, 1.44, 1.59]
    assert clipping(norm) is None  # 13 of 20


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


# --- lr_schedule_incomplete


def decay(done: int, planned: int, floor: float = 0.0):
    rate = [2e-4 * (floor + (1 - floor) * (1 - i / planned)) for i in range(done)]
    return log([1.0] * done, learning_rate=rate, global_step=done, max_steps=planned)


def test_schedule() -> None:
    for done, severity in (
        (40, MEDIUM),
        (59, MEDIUM),
        (60, LOW),
        (85, LOW),
        (95, None),
        (98, None),
    ):
        assert level(lr_schedule_incomplete, log=decay(done, 100)) == severity
    named = training(lr_scheduler_type="cosine")
    assert level(lr_schedule_incomplete, log=decay(85, 100), training=named) is LOW


@pytest.mark.parametrize(
    "settings",
    [
        {"lr_scheduler_type": "constant"},
        {"lr_scheduler_type": "constant_with_warmup"},
        {"lr_scheduler_type": "cosine_with_min_lr"},
        {"lr_scheduler_type": "inverse_sqrt"},
        {"lr_scheduler_type": "cosine", "lr_scheduler_kwargs": {"min_lr_rate": 0.1}},
        {"early_stopping_patience": 3},
        {"load_best_model_at_end": True},
    ],
)
def test_schedules_that_end_so_on_purpose(settings: dict) -> None:
    facts = decay(60, 100)
    assert one(lr_schedule_incomplete, log=facts, training=training(**settings)) is None


def test_schedule_of_whole_runs() -> None:
    # the log stops a line short of the end
    facts = log([1.0] * 6, learning_rate=[19e-6, 17e-6, 13e-6, 8e-6, 4e-6, 3e-6])
    facts = dataclasses.replace(facts, global_step=692, max_steps=692)
    assert one(lr_schedule_incomplete, log=facts) is None
    constant = log([1.0] * 60, learning_rate=[2e-4] * 60, max_steps=100)
    assert one(lr_schedule_incomplete, log=constant) is None


def test_schedule_is_not_judged() -> None:
    unknown = dataclasses.replace(decay(40, 100), max_steps=None)
    bare = log([1.0] * 40, max_steps=100)
    for facts in (unknown, bare):
        with pytest.raises(NotAssessed):
            one(lr_schedule_incomplete, log=facts)


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


# --- lr_rewarm_on_resume

FIRST = [2e-4 * min(i / 5, (60 - i) / 55) for i in range(60)]


def test_rewarm() -> None:
    after = [2e-4 * (180 - i) / 175 for i in range(61, 180)]
    facts = log([0.3] * 180, learning_rate=[*FIRST, 0.0, *after])
    found = one(lr_rewarm_on_resume, log=facts)
    assert found is not None
    assert found.severity is MEDIUM
    assert found.evidence["step"] == 62


@pytest.mark.parametrize(
    ("rate", "schedule"),
    [
        (FIRST, None),
        ([1e-4] * 60, None),
        (FIRST * 3, "cosine_with_restarts"),
        (FIRST * 3, None),  # even distances: restarts by their shape
        ([2e-4 * (1 - i / 60) for i in range(60)] + [0.0, 1e-6], None),
        ([0.0, 0.0, 1e-4, 1e-4, 1e-4], None),
    ],
)
def test_no_rewarm(rate, schedule: str | None) -> None:
    given = training(**({} if schedule is None else {"lr_scheduler_type": schedule}))
    facts = log([0.3] * len(rate), learning_rate=rate)
    assert one(lr_rewarm_on_resume, log=facts, training=given) is None


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
