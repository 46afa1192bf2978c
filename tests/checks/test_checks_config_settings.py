"""Checks that read plain settings: each edge of each threshold, and what must stay silent."""

from __future__ import annotations

import dataclasses
import math

import pytest

from gradian_checks.config.fp16_precision import fp16_precision
from gradian_checks.config.grad_clip_disabled import grad_clip_disabled
from gradian_checks.config.ignored_config_key import ignored_config_key
from gradian_checks.config.known_bad_versions import known_bad_versions
from gradian_checks.config.no_eval_set import no_eval_set
from gradian_checks.config.requested_vs_actual import requested_vs_actual
from gradian_checks.config.seed_unset import seed_unset
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import adapter, chat_rows, log, rows, training
from gradian_core.findings import Severity
from gradian_core.runs.artifact import UnknownKey, Value

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
