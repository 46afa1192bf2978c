"""Checks of the warmup, in settings and in logs."""

from __future__ import annotations

import pytest

from gradian_checks.config.no_warmup import no_warmup
from gradian_checks.config.warmup_exceeds_training import warmup_exceeds_training
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


# --- no_warmup


def linear(steps: int, peak: float = 2e-4, warmup: int = 0, every: int = 1, used: bool = True):
    """Learning rates as transformers logs them: used at the step, or after it (up to 4.50)."""
    rate = []
    for step in range(every, steps + 1, every):
        at = step - 1 if used else step
        rise = at / warmup if warmup and at < warmup else 1.0
        rate.append(peak * (rise if rise < 1 else max(0.0, (steps - at) / (steps - warmup))))
    return log(
        [1.0] * len(rate), learning_rate=rate, steps=range(every, steps + 1, every), max_steps=steps
    )


@pytest.mark.parametrize("settings", [{"warmup_steps": 0}, {"warmup_ratio": 0.0}])
def test_no_warmup(settings: dict) -> None:
    calm = {"learning_rate": 2e-4, **settings}
    assert level(no_warmup, training=training(**calm), adapter=adapter()) is INFO
    hot = {"learning_rate": 3.1e-4, **settings}
    assert level(no_warmup, training=training(**hot), adapter=adapter()) is LOW
    full = training(finetuning_type="full", **calm)
    assert level(no_warmup, training=full) is LOW


@pytest.mark.parametrize(
    "settings",
    [
        {"warmup_steps": 5},
        {"warmup_steps": 0.03},  # transformers 5: below 1 is a share
        {"warmup_steps": 0, "warmup_ratio": 0.1},
        {"warmup_steps": Value(0.03, "default of axolotl", "default")},
        {"warmup_steps": Value(0.1, "default of unsloth", "default")},
    ],
)
def test_warmup(settings: dict) -> None:
    given = training(learning_rate=1e-3, **settings)
    assert level(no_warmup, training=given, adapter=adapter()) is None


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize("warmup", [2, 5, 20])
def test_warmup_in_the_log(used: bool, warmup: int) -> None:
    facts = linear(100, warmup=warmup, used=used)
    for settings in (training(), training(warmup_steps=0), training(warmup_ratio=0.0)):
        assert level(no_warmup, training=settings, log=facts) is None


@pytest.mark.parametrize("used", [True, False])
def test_no_warmup_in_the_log(used: bool) -> None:
    found = one(no_warmup, training=training(), log=linear(100, used=used))
    assert found is not None
    assert found.severity is INFO


def test_no_warmup_by_a_straight_line() -> None:
    found = one(no_warmup, training=training(), log=linear(201, every=10, used=False))
    assert found is not None
    assert "2e-4 at step 0" in found.evidence["source"]


@pytest.mark.parametrize("warmup", [3, 6, 10])
def test_warmup_before_the_first_log_line(warmup: int) -> None:
    with pytest.raises(NotAssessed):
        one(no_warmup, training=training(), log=linear(201, warmup=warmup, every=10, used=False))


def test_default_of_zero_does_not_beat_the_log() -> None:
    zero = training(warmup_steps=Value(0, "default of transformers", "default"))
    assert level(no_warmup, training=zero, log=linear(100, warmup=5)) is None
    assert level(no_warmup, training=zero) is INFO


def test_unknown_warmup() -> None:
    with pytest.raises(NotAssessed):
        one(no_warmup, training=training())
    with pytest.raises(NotAssessed):
        one(no_warmup, training=training(), log=log([9.07], learning_rate=[2e-5], steps=[5]))


# --- warmup_exceeds_training


@pytest.mark.parametrize(
    ("warmup", "severity"),
    [(0, None), (29, None), (30, MEDIUM), (59, MEDIUM), (60, HIGH), (99, HIGH)],
)
def test_warmup_exceeds(warmup: int, severity) -> None:
    given = training(warmup_steps=warmup, max_steps=60)
    assert level(warmup_exceeds_training, training=given) == severity


def test_warmup_exceeds_by_rows() -> None:
    given = training(
        warmup_steps=20,
        num_train_epochs=3,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        world_size=1,
    )
    assert level(warmup_exceeds_training, training=given, examples=rows(n=8)) is HIGH
    assert level(warmup_exceeds_training, training=given, examples=rows(n=400)) is None
    with pytest.raises(NotAssessed):
        one(warmup_exceeds_training, training=given)


def test_warmup_exceeds_by_the_log() -> None:
    rises = log([2.0] * 6, learning_rate=[1e-5 * i for i in range(6)])
    assert level(warmup_exceeds_training, training=training(), log=rises) is HIGH
    cut = log([2.0] * 6, learning_rate=[1e-5 * i for i in range(6)], max_steps=60)
    with pytest.raises(NotAssessed):
        one(warmup_exceeds_training, training=training(), log=cut)
    assert level(warmup_exceeds_training, training=training(), log=linear(100, warmup=5)) is None


def test_warmup_share() -> None:
    assert level(warmup_exceeds_training, training=training(warmup_ratio=0.6)) is MEDIUM
    assert level(warmup_exceeds_training, training=training(warmup_ratio=0.1)) is None
