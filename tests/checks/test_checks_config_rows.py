"""Checks of what a run did with its rows: packing, padding, sequence length."""

from __future__ import annotations

import dataclasses

import pytest

from gradian_checks.config.max_seq_length_vs_data import max_seq_length_vs_data
from gradian_checks.config.packing_contamination import packing_contamination
from gradian_checks.config.packing_with_completion_loss import packing_with_completion_loss
from gradian_checks.config.pad_equals_eos import pad_equals_eos
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import adapter, chat_rows, rows, tokenizer, tokens, training
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


def with_versions(settings, **versions: str):
    return dataclasses.replace(
        settings, versions={name: Value(v, "sample") for name, v in versions.items()}
    )


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
