"""Learning rates: thresholds, documented recipes that must stay clean, and what is not judged."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_checks._names import billions
from gradian_checks._read import short
from gradian_checks.config.lr_too_high import lr_too_high
from gradian_checks.config.lr_too_low import lr_too_low
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import adapter, log, training
from gradian_core.findings import Severity
from gradian_core.runs.artifact import Value

NAN = float("nan")


def high(lr: float, *, log_=None, settings=None, **raw):
    found = list(
        lr_too_high(
            training=training(learning_rate=lr, **settings or {}), adapter=adapter(**raw), log=log_
        )
    )
    assert len(found) <= 1
    return found[0] if found else None


def low(lr: float, *, log_=None, settings=None, **raw):
    found = list(
        lr_too_low(
            training=training(learning_rate=lr, **settings or {}), adapter=adapter(**raw), log=log_
        )
    )
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize(
    ("lr", "severity"),
    [
        (2.4e-4, None),
        (3e-4, None),  # both measures at their edge: effective 6e-4, the other exactly 3e-4
        (3.1e-4, Severity.LOW),
        (4.99e-4, Severity.LOW),
        (5e-4, Severity.HIGH),
        (9.9e-4, Severity.HIGH),
        (1e-3, Severity.CRITICAL),
        (2e-3, Severity.CRITICAL),
    ],
)
def test_high_bands(lr: float, severity: Severity | None) -> None:
    found = high(lr, r=16, lora_alpha=32)
    assert (found and found.severity) == severity


DOCUMENTED = [
    pytest.param(2e-4, {"r": 256, "lora_alpha": 16}, id="trl-sft"),
    pytest.param(5e-5, {"r": 1, "lora_alpha": 32}, id="trl-rank-1"),
    pytest.param(1e-4, {"r": 64, "lora_alpha": 64, "use_rslora": True}, id="peft-rslora"),
    pytest.param(1e-4, {"r": 64, "lora_alpha": 128}, id="peft-r64"),
    pytest.param(2e-4, {"r": 64, "lora_alpha": 16}, id="qlora-7b"),
    pytest.param(2e-4, {"r": 32, "lora_alpha": 64}, id="qvikhr"),
    pytest.param(1e-5, {"r": 8, "lora_alpha": 160}, id="mlx-default"),
    pytest.param(2e-5, {"r": 8, "lora_alpha": 160}, id="mlx-scale-20"),
    pytest.param(2e-4, {"r": 32, "lora_alpha": 16}, id="axolotl-qlora"),
    pytest.param(1e-4, {"r": 8, "lora_alpha": 16}, id="llama-factory"),
    pytest.param(2e-4, {"r": 16, "lora_alpha": 16}, id="unsloth"),
]


@pytest.mark.parametrize(("lr", "raw"), DOCUMENTED)
def test_documented_recipes_are_clean(lr: float, raw: dict) -> None:
    assert high(lr, **raw) is None
    assert low(lr, **raw) is None


def test_torchtune_default_is_low_at_most() -> None:
    found = high(3e-4, r=64, lora_alpha=128)
    assert found is not None
    assert found.severity is Severity.LOW


def test_finding_shows_the_sum() -> None:
    found = high(2e-3, r=16, lora_alpha=32)
    assert found is not None
    assert "lr=2e-3 x alpha/r=2 = 4e-3" in found.title
    assert found.evidence["effective_learning_rate"] == pytest.approx(4e-3)
    assert found.evidence["rank_independent"] == pytest.approx(2e-3)


@given(st.floats(1e-6, 1e-1), st.integers(1, 512), st.floats(1, 1024), st.booleans(), st.booleans())
def test_advice_is_clean_itself(lr: float, r: int, alpha: float, rslora: bool, large: bool) -> None:
    raw = {"r": r, "lora_alpha": alpha, "use_rslora": rslora}
    raw["base_model_name_or_path"] = "example/m-70b" if large else "example/m-7b"
    found = high(lr, **raw)
    if found is None:
        return
    assert low(lr, **raw) is None
    advised = float(found.fix.rsplit(" ", 1)[1].rstrip("."))
    assert advised < lr
    assert high(advised, **raw) is None


def test_large_models_take_half() -> None:
    raw = {"r": 16, "lora_alpha": 32}
    assert high(2.6e-4, **raw) is None
    found = high(2.6e-4, base_model_name_or_path="meta-llama/Llama-2-70b-hf", **raw)
    assert found is not None
    assert found.severity is Severity.HIGH


def test_patterns_count_with_the_strongest_module() -> None:
    plain = {"r": 64, "lora_alpha": 32}
    assert high(1e-3, **plain, alpha_pattern={}) is not None
    assert high(4e-4, **plain) is None
    found = high(4e-4, **plain, rank_pattern={"q_proj": 8})
    assert found is not None
    assert found.evidence["scaling"] == 4
    found = high(4e-4, **plain, rank_pattern={"q_proj": 8}, alpha_pattern={"q_proj": 16})
    assert found is not None
    assert found.evidence["scaling"] == 2


def test_rslora_scaling() -> None:
    found = high(1e-3, r=64, lora_alpha=64, use_rslora=True)
    assert found is not None
    assert found.evidence["scaling"] == 8
    assert "alpha/sqrt(r)=8" in found.title


def test_one_level_more_where_training_came_apart() -> None:
    raw = {"r": 16, "lora_alpha": 32}
    apart = log([1.0, 0.9, "nan", "nan", "nan"])
    for lr, severity in ((4e-4, Severity.MEDIUM), (5e-4, Severity.CRITICAL)):
        found = high(lr, log_=apart, **raw)
        assert found is not None
        assert found.severity is severity
    assert high(2e-4, log_=apart, **raw) is None
    # a spike that comes back is no evidence
    lone = log([1.0, 0.9] * 20 + [4.0] + [1.0, 0.9] * 20)
    found = high(5e-4, log_=lone, **raw)
    assert found is not None
    assert found.severity is Severity.HIGH


def test_low_bands() -> None:
    raw = {"r": 32, "lora_alpha": 16}
    assert low(2e-5, **raw) is None  # the configured rate is not below 2e-5
    for lr, severity in (
        (1.9e-5, Severity.LOW),
        (1e-5, Severity.LOW),
        (6e-6, Severity.MEDIUM),
        (1e-6, Severity.HIGH),
    ):
        found = low(lr, **raw)
        assert found is not None, lr
        assert found.severity is severity
    # alpha/r = 2: 5e-6 acts as 1e-5
    assert low(5e-6, r=16, lora_alpha=32) is None
    assert low(4.9e-6, r=16, lora_alpha=32) is not None


@given(st.floats(1e-9, 1.9e-5), st.integers(1, 512), st.floats(1, 1024))
def test_low_advice_is_clean_itself(lr: float, r: int, alpha: float) -> None:
    found = low(lr, r=r, lora_alpha=alpha)
    if found is None:
        return
    assert high(lr, r=r, lora_alpha=alpha) is None
    advised = float(found.fix.rsplit(" ", 1)[1].rstrip("."))
    assert low(advised, r=r, lora_alpha=alpha) is None
    assert high(advised, r=r, lora_alpha=alpha) is None


@pytest.mark.parametrize(
    "optimiser",
    [
        "adamw_torch",
        "adamw_torch_fused",
        "adamw_bnb_8bit",
        "paged_adamw_32bit",
        "adamw_8bit",
        "adam",
        "torch.optim.AdamW",
        "OptimizerNames.ADAMW_BNB",
        "bitsandbytes.optim.PagedAdamW8bit",
    ],
)
def test_adamw_family_is_judged(optimiser: str) -> None:
    assert high(2e-3, settings={"optim": optimiser}) is not None


@pytest.mark.parametrize(
    "optimiser",
    [
        "adafactor",
        "sgd",
        "lion_8bit",
        "prodigy",
        "muon",
        "schedule_free_adamw",
        "galore_adamw",
        "adagrad",
        "lomo",
        "rmsprop",
    ],
)
@pytest.mark.parametrize("lr", [1.0, 1e-7])
def test_other_optimisers_are_not(optimiser: str, lr: float) -> None:
    with pytest.raises(NotAssessed, match="AdamW"):
        high(lr, settings={"optim": optimiser})
    with pytest.raises(NotAssessed, match="AdamW"):
        low(lr, settings={"optim": optimiser})


@pytest.mark.parametrize("stage", ["dpo", "GRPO", "kto", "orpo", "ppo"])
def test_preference_runs_are_not(stage: str) -> None:
    with pytest.raises(NotAssessed, match="supervised"):
        low(1e-6, settings={"stage": stage})


def test_full_fine_tuning_has_its_own_range() -> None:
    for lr, which in ((2e-5, None), (1e-5, None), (2e-4, lr_too_high), (5e-7, lr_too_low)):
        settings = training(learning_rate=lr, finetuning_type="full")
        for check in (lr_too_high, lr_too_low):
            found = list(check(training=settings, adapter=None))
            assert bool(found) == (check is which)
            assert all(f.severity is Severity.LOW for f in found)


@pytest.mark.parametrize(
    ("facts", "match"),
    [
        ({"adapter": None}, "rank and alpha"),
        ({"adapter": adapter(peft_type="IA3", r=None, lora_alpha=None)}, "Not a LoRA"),
        ({"adapter": adapter(r=None)}, "not recorded"),
        ({"adapter": adapter(lora_alpha=0)}, "not recorded"),
        ({"adapter": adapter(r=True)}, "not recorded"),
    ],
)
def test_unknown_adapters_are_not_judged(facts: dict, match: str) -> None:
    with pytest.raises(NotAssessed, match=match):
        list(lr_too_high(training=training(learning_rate=2e-3), **facts))


@pytest.mark.parametrize("value", [None, "fast", 0, -1e-4, NAN, math.inf, True])
def test_unusable_rates_are_not_judged(value: object) -> None:
    for check in (lr_too_high, lr_too_low):
        with pytest.raises(NotAssessed, match="learning rate"):
            list(check(training=training(learning_rate=value), adapter=adapter()))


def test_peak_of_the_log_stands_in() -> None:
    rates = [0.0, 1e-3, 2e-3, 1.5e-3, 1e-3]
    for settings in (
        training(),
        training(learning_rate=Value(5e-5, "default of transformers", "default")),
    ):
        (found,) = lr_too_high(
            training=settings, adapter=adapter(), log=log([1.0] * 5, learning_rate=rates)
        )
        assert found.evidence["learning_rate"] == 2e-3
        assert found.evidence["source"] == "highest logged value"


def test_asked_rate_wins_over_a_warmup_in_the_log() -> None:
    assert low(1e-4, log_=log([9.07], learning_rate=[2e-5], steps=[5])) is None


def test_rate_of_a_log_that_still_rises_is_no_peak() -> None:
    rising = log([2.0] * 4, learning_rate=[1e-7, 2e-7, 3e-7, 4e-7])
    with pytest.raises(NotAssessed, match="peak"):
        list(lr_too_low(training=training(), adapter=adapter(), log=rising))
    constant = log([2.0] * 4, learning_rate=[4e-7] * 4)
    assert list(lr_too_low(training=training(), adapter=adapter(), log=constant))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("meta-llama/Llama-2-70b-hf", 70.0),
        ("mistralai/Mixtral-8x7B-v0.1", 56.0),
        ("Qwen/Qwen3-30B-A3B", 30.0),
        ("EleutherAI/pythia-160m", 0.16),
        ("microsoft/phi-2", None),
        ("unsloth/llama-3-8b-bnb-4bit", 8.0),
        ("Qwen/Qwen2.5-0.5B", 0.5),
        ("openai/gpt-oss-20b", 20.0),
        (None, None),
    ],
)
def test_size_in_a_name(name: str | None, size: float | None) -> None:
    assert billions(name) == size


@pytest.mark.parametrize(
    ("value", "text"),
    [(2e-4, "2e-4"), (1.47e-4, "1.47e-4"), (0.05, "0.05"), (12, "12"), (0, "0"), (2.5e6, "2.5e6")],
)
def test_numbers_as_people_write_them(value: float, text: str) -> None:
    assert short(value) == text
