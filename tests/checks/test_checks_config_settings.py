"""Checks that read settings: each edge of each threshold, and what must stay silent."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from gradian_checks._steps import effective_batch, epochs, planned_steps, row_count, warmup_steps
from gradian_checks.config.fp16_precision import fp16_precision
from gradian_checks.config.grad_clip_disabled import grad_clip_disabled
from gradian_checks.config.ignored_config_key import ignored_config_key
from gradian_checks.config.known_bad_versions import known_bad_versions
from gradian_checks.config.large_effective_batch import large_effective_batch
from gradian_checks.config.max_seq_length_vs_data import max_seq_length_vs_data
from gradian_checks.config.no_eval_set import no_eval_set
from gradian_checks.config.no_warmup import no_warmup
from gradian_checks.config.overtraining import overtraining
from gradian_checks.config.packing_contamination import packing_contamination
from gradian_checks.config.packing_with_completion_loss import packing_with_completion_loss
from gradian_checks.config.pad_equals_eos import pad_equals_eos
from gradian_checks.config.requested_vs_actual import requested_vs_actual
from gradian_checks.config.seed_unset import seed_unset
from gradian_checks.config.small_effective_batch import small_effective_batch
from gradian_checks.config.undertrained import undertrained
from gradian_checks.config.warmup_exceeds_training import warmup_exceeds_training
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import adapter, chat_rows, log, rows, tokenizer, tokens, training
from gradian_core.findings import Severity
from gradian_core.runs.artifact import UnknownKey, Value

NAN = float("nan")
INFO, LOW, MEDIUM = Severity.INFO, Severity.LOW, Severity.MEDIUM
HIGH, CRITICAL = Severity.HIGH, Severity.CRITICAL


def one(check, **facts):
    found = list(check(**facts))
    assert len(found) <= 1
    return found[0] if found else None


def level(check, **facts):
    found = one(check, **facts)
    return None if found is None else found.severity


def with_versions(settings, **versions: str):
    return dataclasses.replace(
        settings, versions={name: Value(v, "sample") for name, v in versions.items()}
    )


# --- fp16_precision


def test_fp16() -> None:
    fp16 = training(fp16=True, bf16=False)
    assert level(fp16_precision, training=fp16) is LOW
    assert level(fp16_precision, training=training(fp16=True)) is LOW
    assert level(fp16_precision, training=training(fp16=False, bf16=True)) is None
    assert level(fp16_precision, training=training(fp16=True, bf16=True)) is None
    assert level(fp16_precision, training=training(fp16=True, bf16="auto")) is None
    assert level(fp16_precision, training=training(fp16=False, bf16=False)) is None
    with pytest.raises(NotAssessed):
        one(fp16_precision, training=training())


@pytest.mark.parametrize(
    ("model", "severity"),
    [
        ("google/gemma-2-9b-it", HIGH),
        ("google/flan-t5-base", HIGH),
        ("google/mt5-small", HIGH),
        ("example/base-1b", LOW),
        ("acme/programma-1b", LOW),
    ],
)
def test_fp16_of_families_that_overflow(model: str, severity: Severity) -> None:
    given = adapter(base_model_name_or_path=model)
    assert level(fp16_precision, training=training(fp16=True), adapter=given) is severity


def test_fp16_overflows() -> None:
    fp16 = training(fp16=True)
    lone = log([1.0] * 20, grad_norm=[1.0] * 10 + ["inf"] + [1.0] * 9)
    start = log([1.0] * 20, grad_norm=["inf"] * 3 + [1.0] * 17)
    row = log([1.0] * 20, grad_norm=[1.0] * 10 + ["nan"] * 2 + [1.0] * 8)
    assert level(fp16_precision, training=fp16, log=lone) is LOW
    assert level(fp16_precision, training=fp16, log=start) is LOW
    assert level(fp16_precision, training=fp16, log=row) is HIGH


@pytest.mark.parametrize("device", ["Tesla T4", "NVIDIA Tesla V100-SXM2-16GB", "Apple M2 (MPS)"])
def test_fp16_without_choice_is_info(device: str) -> None:
    assert level(fp16_precision, training=training(fp16=True, device=device)) is INFO


# --- grad_clip_disabled


@pytest.mark.parametrize("value", [0, 0.0, None, math.inf])
def test_no_clipping(value) -> None:
    settings = training(max_grad_norm=value)
    assert level(grad_clip_disabled, training=settings) is INFO
    calm = log([1.0] * 3, grad_norm=[1.0, 10.0, 2.0])
    wild = log([1.0] * 3, grad_norm=[1.0, 10.1, 2.0])
    assert level(grad_clip_disabled, training=settings, log=calm) is INFO
    assert level(grad_clip_disabled, training=settings, log=wild) is MEDIUM


def test_clipping() -> None:
    for value in (1.0, 0.3, 1):
        assert level(grad_clip_disabled, training=training(max_grad_norm=value)) is None
    with pytest.raises(NotAssessed):
        one(grad_clip_disabled, training=training())
    with pytest.raises(NotAssessed, match="DeepSpeed"):
        one(grad_clip_disabled, training=training(max_grad_norm=0.0, deepspeed="ds.json"))


# --- no_eval_set


def test_no_eval_set() -> None:
    none = training(has_eval_set=False)
    assert level(no_eval_set, training=none) is LOW
    assert level(no_eval_set, training=training(has_eval_set=True)) is None
    assert level(no_eval_set, training=none, log=log([2.0], eval=[(1, 1.9)])) is None
    assert level(no_eval_set, training=none, examples=rows(n=99)) is INFO
    assert level(no_eval_set, training=none, examples=rows(n=100)) is LOW


def test_no_eval_set_is_worse_over_many_epochs() -> None:
    for count, severity in ((3, LOW), (3.5, MEDIUM)):
        settings = training(has_eval_set=False, num_train_epochs=count)
        assert level(no_eval_set, training=settings) is severity


def test_eval_set_by_strategy_or_log() -> None:
    assert level(no_eval_set, training=training(eval_strategy="steps")) is None
    assert level(no_eval_set, training=training(eval_strategy="no")) is LOW
    assert level(no_eval_set, training=training(), log=log([2.0, 1.9])) is LOW
    with pytest.raises(NotAssessed):
        one(no_eval_set, training=training())


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


# --- packing


@pytest.mark.parametrize(
    ("version", "settings", "severity"),
    [
        ("0.17.0", {"completion_only_loss": True}, HIGH),
        ("0.19.1", {"assistant_only_loss": True}, HIGH),
        ("0.20.0", {"completion_only_loss": True}, None),
        ("0.24.0", {"assistant_only_loss": True}, None),
        ("1.9.0", {"completion_only_loss": True}, None),
        ("0.16.1", {"collator": "DataCollatorForCompletionOnlyLM"}, MEDIUM),
        ("0.9.3", {"collator": "trl.DataCollatorForCompletionOnlyLM"}, MEDIUM),
        ("0.24.0", {"completion_only_loss": True, "packing_strategy": "wrapped"}, MEDIUM),
        ("0.24.0", {"completion_only_loss": True, "packing_strategy": "bfd"}, None),
        ("0.19.1", {"completion_only_loss": False}, None),
        ("0.19.1", {}, None),
    ],
)
def test_packing_with_completion_loss(version: str, settings: dict, severity) -> None:
    given = training("trl", version, packing=True, **settings)
    assert level(packing_with_completion_loss, training=given) == severity
    unpacked = training("trl", version, packing=False, **settings)
    assert level(packing_with_completion_loss, training=unpacked) is None


def test_packing_of_prompt_completion_rows() -> None:
    # trl masks prompts by itself where rows have them
    for version, severity in (("0.18.2", HIGH), ("0.21.0", None), ("0.16.0", None)):
        given = training("trl", version, packing=True)
        assert level(packing_with_completion_loss, training=given, examples=rows(n=5)) == severity
        assert level(packing_with_completion_loss, training=given, examples=chat_rows(5)) is None


@pytest.mark.parametrize("tool", ["axolotl", "llamafactory", "torchtune"])
def test_tools_that_keep_masks(tool: str) -> None:
    given = training(tool, "0.1", packing=True, completion_only_loss=True)
    assert level(packing_with_completion_loss, training=given) is None


def test_packing_of_unknown_version() -> None:
    with pytest.raises(NotAssessed):
        one(
            packing_with_completion_loss,
            training=training("trl", packing=True, completion_only_loss=True),
        )
    unsloth = with_versions(
        training("unsloth", packing=True, completion_only_loss=True), trl="0.19.0"
    )
    assert level(packing_with_completion_loss, training=unsloth) is HIGH


@pytest.mark.parametrize(
    ("tool", "settings", "severity"),
    [
        ("trl", {"attn_implementation": "sdpa"}, MEDIUM),
        ("trl", {"attn_implementation": "eager"}, MEDIUM),
        ("trl", {"attn_implementation": "flash_attention_2"}, None),
        ("trl", {"attn_implementation": "kernels-community/flash-attn3"}, None),
        ("axolotl", {"packing_isolated": True}, None),
        ("llamafactory", {"packing_isolated": False}, MEDIUM),
        ("llamafactory", {"packing_isolated": True}, None),
        ("torchtune", {"packing_isolated": True, "attn_implementation": "sdpa"}, None),
    ],
)
def test_packing_contamination(tool: str, settings: dict, severity) -> None:
    assert level(packing_contamination, training=training(tool, packing=True, **settings)) == (
        severity
    )
    assert level(packing_contamination, training=training(tool, packing=False, **settings)) is None


@pytest.mark.parametrize("settings", [{}, {"attn_implementation": "paged|custom"}])
def test_packing_with_unknown_attention(settings: dict) -> None:
    with pytest.raises(NotAssessed):
        one(packing_contamination, training=training("trl", packing=True, **settings))


# --- pad_equals_eos


@pytest.mark.parametrize(
    ("tool", "version", "settings", "severity"),
    [
        ("transformers", "4.50.0", {"collator": "DataCollatorForLanguageModeling"}, HIGH),
        ("transformers", "4.50.0", {"collator": "DataCollatorForSeq2Seq"}, INFO),
        ("trl", "0.16.1", {}, HIGH),
        ("trl", "0.17.0", {}, INFO),
        ("trl", "0.19.1", {"collator": "DataCollatorForCompletionOnlyLM"}, HIGH),
        ("trl", "1.9.0", {}, INFO),
        ("axolotl", "0.9", {}, INFO),
        ("llamafactory", "0.9.3", {}, INFO),
        ("torchtune", "0.6", {}, INFO),
        ("mlx-lm", "0.30", {}, INFO),
    ],
)
def test_pad_equals_eos(tool: str, version: str, settings: dict, severity: Severity) -> None:
    same = tokenizer(eos="<|im_end|>", pad="<|im_end|>")
    apart = tokenizer(eos="<|im_end|>", pad="<|pad|>")
    given = training(tool, version, **settings)
    assert level(pad_equals_eos, training=given, tokenizer=same) is severity
    assert level(pad_equals_eos, training=given, tokenizer=apart) is None


def test_missing_pad_becomes_eos() -> None:
    none = tokenizer(pad=None)
    assert level(pad_equals_eos, training=training("trl", "0.15.0"), tokenizer=none) is HIGH
    assert level(pad_equals_eos, training=training("llamafactory"), tokenizer=none) is INFO
    with pytest.raises(NotAssessed):
        one(pad_equals_eos, training=training("axolotl"), tokenizer=none)


def test_pad_of_the_config_wins() -> None:
    given = training("axolotl", pad_token="<|endoftext|>")
    assert level(pad_equals_eos, training=given, tokenizer=tokenizer(pad="<|im_end|>")) is None


@pytest.mark.parametrize(
    ("model", "pad", "severity"),
    [
        ("NousResearch/Llama-3.2-1B", "<|end_of_text|>", INFO),
        ("meta-llama/Llama-3.1-8B-Instruct", "<|end_of_text|>", None),
        ("/data/models/phi-2/phi2", "<|endoftext|>", INFO),
        ("Qwen/Qwen2.5-VL-3B", "<|vision_pad|>", NotAssessed),
    ],
)
def test_pad_and_eos_by_family(model: str, pad: str, severity) -> None:
    facts = {
        "training": training("axolotl", pad_token=pad),
        "adapter": adapter(base_model_name_or_path=model),
    }
    if severity is NotAssessed:
        with pytest.raises(NotAssessed):
            one(pad_equals_eos, **facts)
    else:
        assert level(pad_equals_eos, **facts) == severity


def test_pad_of_a_script() -> None:
    given = training(
        pad_token="tokenizer.eos_token",
        collator="DataCollatorForLanguageModeling",
    )
    assert level(pad_equals_eos, training=given) is HIGH
    with pytest.raises(NotAssessed):
        one(pad_equals_eos, training=training("trl", "0.15.0"))


@pytest.mark.parametrize("tool", ["transformers", "trl", "house-trainer"])
def test_unknown_masking_of_padding_is_not_judged(tool: str) -> None:
    same = tokenizer(eos="<|im_end|>", pad="<|im_end|>")
    with pytest.raises(NotAssessed, match="not known how"):
        one(pad_equals_eos, training=training(tool), tokenizer=same)


# --- seed_unset


def test_seed() -> None:
    unset = training("torchtune", seed=Value(None, "config.yaml:37"))
    assert level(seed_unset, training=unset) is LOW
    default = training("llamafactory", seed=Value(42, "default of transformers", "default"))
    found = one(seed_unset, training=default)
    assert found is not None
    assert found.severity is INFO
    assert "42" in found.title
    for seed in (42, 0, 3407):
        assert level(seed_unset, training=training(seed=seed)) is None
    with pytest.raises(NotAssessed):
        one(seed_unset, training=training())


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


# --- max_seq_length_vs_data


@pytest.mark.parametrize(
    ("over", "severity"),
    [(0, None), (1, None), (2, INFO), (10, INFO), (11, MEDIUM), (40, MEDIUM), (41, HIGH)],
)
def test_sequence_length(over: int, severity) -> None:
    items = [{"text": "a" * 50}] * (200 - over) + [{"text": "a" * 90}] * over
    facts = tokens(items=items, max_seq_length=64)
    found = one(max_seq_length_vs_data, training=training(max_seq_length=64), tokens=facts)
    assert (found and found.severity) == severity
    if found is not None:
        assert found.evidence["rows_over"] == over
        assert len(found.example_ids) == min(over, 10)


def test_padding_to_a_roomy_length() -> None:
    items = [{"text": "a" * 100}] * 50
    for limit, settings, severity in (
        (1000, {"pad_to_max_length": True}, LOW),
        (800, {"pad_to_max_length": True}, None),
        (1000, {}, None),
        (1000, {"pad_to_max_length": True, "packing": True}, None),
    ):
        facts = tokens(items=items, max_seq_length=limit)
        given = training(max_seq_length=limit, **settings)
        assert level(max_seq_length_vs_data, training=given, tokens=facts) == severity


def test_split_rows_lose_nothing() -> None:
    facts = tokens(items=[{"text": "a" * 90}] * 50, max_seq_length=64)
    given = training(max_seq_length=64, overlong_rows="split", packing=True)
    assert level(max_seq_length_vs_data, training=given, tokens=facts) is None
    dropped = training(max_seq_length=64, overlong_rows="drop")
    found = one(max_seq_length_vs_data, training=dropped, tokens=facts)
    assert found is not None
    assert "dropped" in found.detail


def test_estimate_is_info_at_most() -> None:
    facts = {"examples": rows(items=[{"text": "a" * 900}] * 50)}
    found = one(max_seq_length_vs_data, training=training(max_seq_length=64), **facts)
    assert found is not None
    assert found.severity is INFO
    assert "estimated" in found.title


def test_unknown_lengths() -> None:
    given = training(max_seq_length=64)
    for facts in (
        {"training": given},
        {"training": training(), "tokens": tokens(n=5)},
        {"tokens": tokens(n=5)},
    ):
        with pytest.raises(NotAssessed):
            one(max_seq_length_vs_data, **facts)
    unlimited = training(max_seq_length=None)
    assert level(max_seq_length_vs_data, training=unlimited, tokens=tokens(n=5)) is None


# --- ignored_config_key, requested_vs_actual


def ignoring(*keys: UnknownKey, **values):
    return dataclasses.replace(training("axolotl", **values), unknown_keys=keys)


def key(name: str, value: object, meant: str | None = None) -> UnknownKey:
    return UnknownKey(name=name, value=value, source="config.yml:3", meant=meant)


def test_ignored_keys() -> None:
    epochs_key = key("num_train_epochs", "3", meant="num_epochs")
    ran = {"num_train_epochs": Value(1.0, "README.md", "ran")}
    assert level(ignored_config_key, training=ignoring(epochs_key, **ran)) is HIGH
    # the run had that value anyway
    same = {"num_train_epochs": Value(3.0, "README.md", "ran")}
    assert level(ignored_config_key, training=ignoring(epochs_key, **same)) is MEDIUM
    dataset = key("datasets.0.prompt_style", "chat")
    assert level(ignored_config_key, training=ignoring(dataset)) is MEDIUM
    assert level(ignored_config_key, training=ignoring(key("my_note", "x"))) is LOW
    assert level(ignored_config_key, training=ignoring(key("report_to", None))) is LOW
    assert level(ignored_config_key, training=ignoring()) is None


def test_ignored_keys_are_all_named() -> None:
    keys = [key(f"key_{i}", i) for i in range(25)]
    found = one(ignored_config_key, training=ignoring(*keys))
    assert found is not None
    assert "24 more" in found.title
    assert found.detail.endswith("and 5 more.")
    assert found.evidence["keys"] == [f"key_{i}" for i in range(25)]


def test_requested_vs_actual() -> None:
    ignored = ignoring(
        key("num_train_epochs", 3, meant="num_epochs"),
        num_train_epochs=Value(1.0, "README.md:80", "ran"),
    )
    found = one(requested_vs_actual, training=ignored)
    assert found is not None
    assert found.severity is MEDIUM
    assert found.evidence["asked"] == {"num_train_epochs": 3}
    assert found.evidence["ran"] == {"num_train_epochs": 1.0}


@pytest.mark.parametrize(
    ("name", "asked", "ran", "fires"),
    [
        ("num_train_epochs", 3, 1.0, True),
        ("num_train_epochs", 2.5, 3, False),  # trainer_state.json rounds up
        ("num_train_epochs", 3.0, 3, False),
        ("max_steps", -1, 500, False),
        ("max_steps", 500, 500, False),
        ("max_steps", 500, 60, True),
        ("per_device_train_batch_size", 2, 8, False),  # four devices in one process
        ("per_device_train_batch_size", 8, 2, True),  # auto_find_batch_size
        ("gradient_accumulation_steps", 8, 4, True),
        ("learning_rate", 2e-4, 0.0002, False),
        ("learning_rate", 2e-4, 2e-5, True),
        ("learning_rate", "fast", 2e-5, False),
    ],
)
def test_requested_values(name: str, asked: object, ran: object, fires: bool) -> None:
    settings = dataclasses.replace(
        training("axolotl", **{name: Value(ran, "record", "ran")}),
        requested={name: Value(asked, "config.yml:3")},
    )
    assert (one(requested_vs_actual, training=settings) is not None) is fires


def test_epochs_under_a_cap_are_no_mismatch() -> None:
    settings = dataclasses.replace(
        training(
            num_train_epochs=Value(2, "trainer_state.json", "ran"),
            max_steps=Value(500, "trainer_state.json", "ran"),
        ),
        requested={"num_train_epochs": Value(1, "config.yml:3")},
    )
    assert one(requested_vs_actual, training=settings) is None


def test_epochs_done_differ() -> None:
    def ran(done: float, **change):
        facts = dataclasses.replace(log([1.0] * 10), epochs_done=done)
        return dataclasses.replace(facts, **change)

    asked = training(num_train_epochs=5.42)
    assert level(requested_vs_actual, training=asked, log=ran(0.84)) is MEDIUM
    assert level(requested_vs_actual, training=asked, log=ran(5.4)) is None
    assert level(requested_vs_actual, training=asked, log=ran(0.84, max_steps=60)) is None
    capped = training(num_train_epochs=5.42, max_steps=10)
    assert level(requested_vs_actual, training=capped, log=ran(0.84)) is None


# --- known_bad_versions


@pytest.mark.parametrize(
    ("version", "accumulated", "fires"),
    [
        ("4.45.2", 8, False),
        ("4.46.0", 8, True),
        ("4.48.3", 8, True),
        ("4.48.3", 1, False),
        ("4.49.0", 8, False),
        ("5.2.0", 8, False),
    ],
)
def test_accumulation_bug(version: str, accumulated: int, fires: bool) -> None:
    given = with_versions(training(gradient_accumulation_steps=accumulated), transformers=version)
    assert (one(known_bad_versions, training=given) is not None) is fires


def test_accumulation_bug_is_disproved_by_the_log() -> None:
    given = with_versions(training(gradient_accumulation_steps=4), transformers="4.48.3")
    right = log([0.19, 0.11, 0.07], eval=[(1, 0.2), (2, 0.1), (3, 0.08)])
    assert one(known_bad_versions, training=given, log=right) is None
    wrong = log([0.8, 0.44, 0.3], eval=[(1, 0.2), (2, 0.1), (3, 0.08)])
    found = one(known_bad_versions, training=given, log=wrong)
    assert found is not None
    assert "log shows" in found.detail


def test_trl_with_transformers_5() -> None:
    for trl, transformers, severity in (
        ("0.24.0", "5.5.0", HIGH),
        ("0.24.0", "5.4.1", None),
        ("0.25.0", "5.5.0", None),
    ):
        given = with_versions(training("trl"), trl=trl, transformers=transformers)
        assert level(known_bad_versions, training=given, examples=rows(n=5)) == severity
        assert level(known_bad_versions, training=given, examples=chat_rows(5)) is None


def test_trl_without_end_token() -> None:
    text = rows(items=[{"text": "abc"}] * 5)
    for trl, severity in (("0.15.2", LOW), ("0.16.0", None)):
        given = training("trl", trl)
        assert level(known_bad_versions, training=given, examples=text) == severity
        assert level(known_bad_versions, training=given, examples=chat_rows(5)) is None
    with pytest.raises(NotAssessed):
        one(known_bad_versions, training=training("axolotl", "0.9"))
