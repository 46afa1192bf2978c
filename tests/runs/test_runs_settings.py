"""Normalised settings and what counts as evidence."""

from __future__ import annotations

import math

import pytest

from gradian_core.runs.artifact import TrainerLog, Value
from gradian_core.runs.derive import derived
from gradian_core.runs.evidence import found, settle
from gradian_core.runs.settings import SETTINGS, coerce
from gradian_plugins.runs._fields import fields, fitting_version, release


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("learning_rate", "2e-4", 2e-4),
        ("learning_rate", "1.0e-05", 1e-5),
        ("learning_rate", 1, 1),
        ("learning_rate", "auto", "auto"),
        ("num_train_epochs", "3", 3),
        ("max_steps", 60.0, 60),
        ("max_steps", "-1", -1),
        ("seed", None, None),
        ("seed", "9" * 5000, "9" * 5000),
        ("max_grad_norm", "inf", math.inf),
        ("packing", "true", True),
        ("packing", "False", False),
        ("packing", 1, 1),
        ("bf16", "auto", "auto"),
        ("bf16", "no", False),
        ("max_seq_length", math.nan, math.nan),
        ("base_model", "1", "1"),
        ("not_a_setting", "1", "1"),
    ],
)
def test_coerce(name, given, wanted):
    made = coerce(name, given)
    assert made == wanted or (made != made and wanted != wanted)
    assert type(made) is type(wanted)


def test_every_setting_has_a_meaning():
    assert all(setting.meaning and setting.meaning[0] != " " for setting in SETTINGS.values())


def test_the_best_evidence_counts_and_what_was_asked_stays_known():
    ran = found({"num_train_epochs": 1.0}, "README.md:3", "ran")
    asked = found({"num_train_epochs": "3", "seed": 1}, "c.yml:9", "asked")
    other = found({"seed": 2}, "d.yml:1", "asked")
    default = {"seed": Value(42, "default", "default"), "bf16": Value(False, "default", "default")}
    values, requested = settle([default, asked, other, ran])
    assert values["num_train_epochs"] == Value(1.0, "README.md:3", "ran")
    assert values["seed"].value == 1
    assert values["bf16"].basis == "default"
    assert requested == {"num_train_epochs": Value(3, "c.yml:9", "asked")}


@pytest.mark.parametrize(
    ("known", "name", "wanted"),
    [
        ((2, 4, 3, None), "total_train_batch_size", 24),
        ((2, 4, None, 24), "world_size", 3),
        ((2, None, 3, 24), "gradient_accumulation_steps", 4),
        ((2, 4, None, 25), "world_size", None),
        ((2, 4, None, None), "total_train_batch_size", None),
        (("x", 4, 1, None), "total_train_batch_size", None),
    ],
)
def test_batch_sizes_follow_from_each_other(known, name, wanted):
    names = ("per_device_train_batch_size", "gradient_accumulation_steps", "world_size")
    names += ("total_train_batch_size",)
    values = {n: Value(v, "x") for n, v in zip(names, known, strict=True) if v is not None}
    made = derived(values, None).get(name)
    assert (made.value if made else None) == wanted
    assert made is None or made.basis == "inferred"


def test_the_log_tells_of_an_eval_set():
    evaluated = TrainerLog(records=({"step": 1, "eval_law_loss": 1.0},), source="state")
    silent = TrainerLog(records=({"step": 1, "loss": 1.0},), source="state")
    off = {"has_eval_set": Value(False, "training_args.bin", "ran")}
    on = {"has_eval_set": Value(True, "c.yml", "asked")}
    assert derived(off, evaluated)["has_eval_set"].value is True
    assert derived({}, silent)["has_eval_set"] == Value(False, "no eval_loss in state", "inferred")
    assert derived(on, silent)["has_eval_set"].value is True
    assert "has_eval_set" not in derived({}, TrainerLog())


def known_keys(package, version):
    tables = fields()[package]["fields"]
    this = release(version)
    return {
        key
        for key, (first, last) in tables.items()
        if release(first) <= this and (last is None or this <= release(last))
    }


@pytest.mark.parametrize(
    ("package", "version", "found"),
    [
        ("trl", "0.17.0", "0.17.0"),
        ("trl", "0.19.1", "0.19.0"),
        ("trl", "0.21.0", "0.20.0"),  # 0.20 to 0.22 have the same keys
        ("trl", "1.4.0", None),  # so do six minor versions here
        ("peft", "0.15.2", "0.15.0"),
        ("peft", "0.17.1", "0.17.0"),
    ],
)
def test_versions_by_their_keys(package, version, found):
    keys = {*known_keys(package, version), "learning_rate", "peft_type"}
    value = fitting_version(package, keys, "a file").get(package)
    assert (value.value if value else None) == found
    assert value is None or (value.basis == "inferred" and "a file" in value.source)


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("5.0.0rc1", (5, 0, 0)), ("0.9.1.post1", (0, 9, 1)), ("2.5.1+cu121", (2, 5, 1)), ("x", ())],
)
def test_release(version, numbers):
    assert release(version) == numbers
