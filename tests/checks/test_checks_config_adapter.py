"""Checks that read the adapter's configuration: dropout, base model, embeddings, method."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gradian_checks.config.base_model_mismatch import base_model_mismatch
from gradian_checks.config.high_lora_dropout import high_lora_dropout
from gradian_checks.config.not_a_lora_run import not_a_lora_run
from gradian_checks.config.tied_embeddings_trained import tied_embeddings_trained
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import adapter, tokenizer, training
from gradian_core.findings import Severity


def one(check, **facts):
    found = list(check(**facts))
    assert len(found) <= 1
    return found[0] if found else None


# --- high_lora_dropout


@pytest.mark.parametrize(
    ("dropout", "severity"),
    [
        (0, None),
        (0.0, None),
        (0.05, None),
        (0.1, None),
        (0.11, Severity.LOW),
        (0.29, Severity.LOW),
        (0.3, Severity.MEDIUM),
        (0.5, Severity.HIGH),
        (1, Severity.HIGH),
        (5, Severity.HIGH),
    ],
)
def test_dropout(dropout: float, severity: Severity | None) -> None:
    found = one(high_lora_dropout, adapter=adapter(lora_dropout=dropout))
    assert (found and found.severity) == severity


def test_dropout_in_percent_is_told() -> None:
    found = one(high_lora_dropout, adapter=adapter(lora_dropout=5))
    assert found is not None
    assert "percentage" in found.title
    assert "0.05" in found.fix


@pytest.mark.parametrize("dropout", [None, "0.5", True, -1, float("nan"), float("inf")])
def test_unknown_dropout(dropout) -> None:
    with pytest.raises(NotAssessed):
        one(high_lora_dropout, adapter=adapter(lora_dropout=dropout))


# --- base_model_mismatch


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        ("unsloth/Meta-Llama-3-8B-bnb-4bit", "meta-llama/Meta-Llama-3-8B"),
        ("unsloth/llama-3-8b-bnb-4bit", "meta-llama/Meta-Llama-3-8B"),
        ("unsloth/Llama-3.2-1B-Instruct-unsloth-bnb-4bit", "meta-llama/Llama-3.2-1B-Instruct"),
        ("NousResearch/Llama-2-7b-hf", "meta-llama/Llama-2-7b"),
        ("unsloth/Ministral-3-3B-Instruct-2512", "mistralai/Ministral-3-3B-Instruct-2512"),
        ("mlx-community/Llama-3.2-1B-Instruct-4bit", "meta-llama/Llama-3.2-1B-Instruct"),
        ("mlx-community/Llama-3.2-1B-Instruct-bf16", "meta-llama/Llama-3.2-1B-Instruct"),
        ("TheBloke/Mistral-7B-v0.1-GPTQ", "mistralai/Mistral-7B-v0.1"),
        ("Qwen/Qwen2.5-7B@a09a35458c70", "Qwen/Qwen2.5-7B"),
        ("/x/models--Qwen--Qwen2.5-7B/snapshots/a09a", "Qwen/Qwen2.5-7B"),
    ],
)
def test_same_model(mine: str, other: str) -> None:
    given = {
        "adapter": adapter(base_model_name_or_path=mine),
        "training": training(base_model=other),
    }
    assert one(base_model_mismatch, **given) is None


@pytest.mark.parametrize(
    ("mine", "other", "severity"),
    [
        ("meta-llama/Llama-3.2-1B", "Qwen/Qwen2.5-1.5B", Severity.CRITICAL),
        ("meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.2-3B", Severity.CRITICAL),
        ("meta-llama/Meta-Llama-3-8B", "meta-llama/Llama-3.1-8B", Severity.CRITICAL),
        ("NousResearch/Hermes-2-Pro-Llama-3-8B", "meta-llama/Meta-Llama-3-8B", Severity.CRITICAL),
        ("meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.2-1B-Instruct", Severity.HIGH),
        ("google/gemma-2-9b", "google/gemma-2-9b-it", Severity.HIGH),
        ("Qwen/Qwen3-4B", "Qwen/Qwen3-4B-Instruct-2507", Severity.HIGH),
        ("mistralai/Mistral-7B-v0.1", "mistralai/Mistral-7B-v0.3", Severity.HIGH),
    ],
)
def test_other_model(mine: str, other: str, severity: Severity) -> None:
    given = adapter(base_model_name_or_path=mine)
    found = one(base_model_mismatch, adapter=given, training=training(base_model=other))
    assert found is not None
    assert found.severity is severity


def test_folder_is_info() -> None:
    mine = adapter(base_model_name_or_path="./Qwen2.5-7B-Instruct")
    for facts in (
        {},
        {"training": training(base_model="Qwen/Qwen2.5-7B-Instruct")},
        {"training": training(base_model="meta-llama/Llama-3.2-1B")},
    ):
        found = one(base_model_mismatch, adapter=mine, **facts)
        assert found is not None
        assert found.severity is Severity.INFO


def test_one_name_alone_is_not_judged() -> None:
    with pytest.raises(NotAssessed):
        one(base_model_mismatch, adapter=adapter())
    with pytest.raises(NotAssessed):
        one(base_model_mismatch, adapter=adapter(base_model_name_or_path=None))


def test_base_model_option_is_compared() -> None:
    other = dataclasses.replace(tokenizer(), base_model="Qwen/Qwen2.5-0.5B")
    mine = adapter(base_model_name_or_path="meta-llama/Llama-3.2-1B")
    found = one(base_model_mismatch, adapter=mine, tokenizer=other)
    assert found is not None
    assert found.severity is Severity.CRITICAL
    assert found.evidence["named_by"] == "--base-model"


def test_the_name_of_a_tokenizer_is_no_base_model() -> None:
    # an adapter on a base model, with the tokenizer of its instruct sibling
    other = dataclasses.replace(tokenizer(), name="Qwen/Qwen2.5-0.5B-Instruct")
    mine = adapter(base_model_name_or_path="Qwen/Qwen2.5-0.5B")
    with pytest.raises(NotAssessed):
        one(base_model_mismatch, adapter=mine, tokenizer=other)


def test_tokenizer_saved_with_the_run_is_no_base_model(tmp_path: Path) -> None:
    saved = dataclasses.replace(tokenizer(), name=str(tmp_path))
    with pytest.raises(NotAssessed):
        one(base_model_mismatch, adapter=adapter(), tokenizer=saved)


# --- tied_embeddings_trained


def test_tied() -> None:
    small, big = "Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-7B"
    for model, raw, fires in (
        (small, {"modules_to_save": ["lm_head"]}, True),
        (small, {"modules_to_save": ["embed_tokens", "lm_head"]}, True),
        (small, {"target_modules": ["q_proj", "lm_head"]}, True),
        (small, {"modules_to_save": ["lm_head"], "ensure_weight_tying": True}, False),
        (small, {"modules_to_save": None}, False),
        (small, {"modules_to_save": ["score"]}, False),
        (big, {"modules_to_save": ["lm_head"]}, False),
    ):
        found = one(tied_embeddings_trained, adapter=adapter(base_model_name_or_path=model, **raw))
        assert (found is not None) is fires, (model, raw)


def test_tied_by_the_config() -> None:
    given = adapter(modules_to_save=["lm_head"])
    with pytest.raises(NotAssessed):
        one(tied_embeddings_trained, adapter=given)
    for tied in (True, False):
        settings = training(tie_word_embeddings=tied)
        found = one(tied_embeddings_trained, adapter=given, training=settings)
        assert (found is not None) is tied


# --- not_a_lora_run


def test_full_fine_tune() -> None:
    found = one(not_a_lora_run, training=training("axolotl", finetuning_type="full"))
    assert found is not None
    assert found.severity is Severity.MEDIUM
    assert "adapter: lora" in found.fix


def test_other_method() -> None:
    found = one(not_a_lora_run, adapter=adapter(peft_type="IA3"))
    assert found is not None
    assert "IA3" in found.title
    assert found.severity is Severity.LOW
    found = one(not_a_lora_run, training=training(finetuning_type="oft"))
    assert found is not None
    assert found.severity is Severity.LOW


@pytest.mark.parametrize("method", ["lora", "dora", "LoRA"])
def test_lora_run(method: str) -> None:
    assert one(not_a_lora_run, training=training(finetuning_type=method)) is None
    assert one(not_a_lora_run, adapter=adapter()) is None


def test_unknown_method() -> None:
    for facts in ({}, {"training": training()}):
        with pytest.raises(NotAssessed):
            one(not_a_lora_run, **facts)
