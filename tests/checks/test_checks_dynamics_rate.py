"""Checks on gradient norms and learning rates over a run."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from gradian_checks.dynamics.always_clipping import always_clipping
from gradian_checks.dynamics.grad_norm_explosion import grad_norm_explosion
from gradian_checks.dynamics.lr_rewarm_on_resume import lr_rewarm_on_resume
from gradian_checks.dynamics.lr_schedule_incomplete import lr_schedule_incomplete
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import log, training
from gradian_core.findings import Severity

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
