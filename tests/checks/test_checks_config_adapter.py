"""Checks that read the adapter: targets, dropout, base model, weights, embeddings."""

from __future__ import annotations

import dataclasses
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from gradian_checks._families import family
from gradian_checks.config.adapter_weights_dead import adapter_weights_dead
from gradian_checks.config.attention_only_targets import attention_only_targets
from gradian_checks.config.base_model_mismatch import base_model_mismatch
from gradian_checks.config.capacity_vs_data import capacity_vs_data
from gradian_checks.config.high_lora_dropout import high_lora_dropout
from gradian_checks.config.not_a_lora_run import not_a_lora_run
from gradian_checks.config.target_modules_unmatched import target_modules_unmatched
from gradian_checks.config.tied_embeddings_trained import tied_embeddings_trained
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import adapter, rows, tokenizer, tokens, training
from gradian_core.findings import Severity


def one(check, **facts):
    found = list(check(**facts))
    assert len(found) <= 1
    return found[0] if found else None


# --- attention_only_targets


@pytest.mark.parametrize(
    "targets",
    [
        ["q_proj", "v_proj"],
        ["q_proj", "k_proj", "v_proj", "o_proj"],
        ["query_key_value"],
        ["Wqkv"],
        ["W_pack"],
        ["self_attn.q_proj", "self_attn.v_proj"],
        ["q_proj", "v_proj", "lm_head"],
        ["attn.c_proj", "c_attn"],
        r".*language_model\..*\.(q_proj|v_proj)",
        r"model\.layers\.\d+\.self_attn\..*_proj",
        "q_proj",
    ],
)
def test_attention_only(targets) -> None:
    found = one(attention_only_targets, adapter=adapter(target_modules=targets))
    assert found is not None
    assert found.severity is Severity.MEDIUM
    assert "all-linear" in found.fix


@pytest.mark.parametrize(
    "targets",
    [
        "all-linear",
        "all",
        ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
        ["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"],  # no gate, but an MLP
        ["q_proj", "v_proj", "output_proj", "up_proj"],
        ["gate_proj", "up_proj", "down_proj"],  # MLP only
        ["c_proj", "c_attn"],
        ["query_key_value", "dense_h_to_4h"],
        ["wqkv", "w1"],
        ["fc1", "q_proj"],
        r"(?:.*?(?:language|text).*?(?:self_attn|mlp).*?(?:q_proj|up_proj))",
        ["model.layers.3.mlp.experts.gate"],
    ],
)
def test_not_attention_only(targets) -> None:
    assert one(attention_only_targets, adapter=adapter(target_modules=targets)) is None


def test_gpt2_c_proj_reaches_the_mlp() -> None:
    gpt2 = adapter(
        base_model_name_or_path="microsoft/DialoGPT-small", target_modules=["c_proj", "c_attn"]
    )
    assert one(attention_only_targets, adapter=gpt2) is None


def test_names_of_another_family_do_not_count() -> None:
    phi = adapter(
        base_model_name_or_path="/data/models/phi-2/phi2",
        target_modules=["qkv_proj", "out_proj", "dense", "dense_h_to_4h", "dense_4h_to_h"],
    )
    found = one(attention_only_targets, adapter=phi)
    assert found is not None
    assert found.evidence["target_modules"] == ["dense"]


@pytest.mark.parametrize("model", [None, "meta-llama/Llama-3.2-1B", "gpt2"])
def test_peft_default_is_attention(model: str | None) -> None:
    given = adapter(target_modules=None, base_model_name_or_path=model)
    found = one(attention_only_targets, adapter=given)
    assert found is not None
    assert found.evidence["by_default"] is True


def test_peft_default_of_phi_has_an_mlp() -> None:
    given = adapter(target_modules=None, base_model_name_or_path="microsoft/phi-2")
    assert one(attention_only_targets, adapter=given) is None


def test_expert_parameters_are_an_mlp() -> None:
    given = adapter(
        target_modules=["q_proj", "v_proj"], target_parameters=["mlp.experts.gate_up_proj"]
    )
    assert one(attention_only_targets, adapter=given) is None


@pytest.mark.parametrize("targets", [["in_proj"], ["q_proj", "strange"], ".*", ["lm_head"]])
def test_unplaced_targets_are_not_judged(targets) -> None:
    with pytest.raises(NotAssessed):
        one(attention_only_targets, adapter=adapter(target_modules=targets))


def test_attention_only_on_few_rows_is_low() -> None:
    given = adapter(target_modules=["q_proj", "v_proj"])
    for count, severity in ((499, Severity.LOW), (500, Severity.MEDIUM), (800, Severity.MEDIUM)):
        found = one(attention_only_targets, adapter=given, examples=rows(n=count))
        assert found is not None
        assert found.severity is severity


@pytest.mark.parametrize(
    "check", [attention_only_targets, high_lora_dropout, target_modules_unmatched]
)
def test_other_methods_are_not_judged(check) -> None:
    with pytest.raises(NotAssessed, match="Not a LoRA adapter"):
        one(check, adapter=adapter(peft_type="IA3"))


@pytest.mark.slow
def test_peft_defaults_agree_with_peft() -> None:
    constants = pytest.importorskip("peft.utils.constants")
    table = constants.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
    for kind, model in (
        ("llama", "meta-llama/Llama-3.2-1B"),
        ("mistral", "mistralai/Mistral-7B-v0.1"),
        ("qwen2", "Qwen/Qwen2.5-7B"),
        ("qwen3", "Qwen/Qwen3-8B"),
        ("gemma2", "google/gemma-2-2b"),
        ("gpt2", "gpt2"),
        ("gpt_neox", "EleutherAI/pythia-70m"),
        ("phi", "microsoft/phi-2"),
        ("bloom", "bigscience/bloom-560m"),
        ("opt", "facebook/opt-125m"),
        ("gptj", "EleutherAI/gpt-j-6b"),
        ("mpt", "mosaicml/mpt-7b"),
        ("falcon", "tiiuae/falcon-7b"),
    ):
        known = family(model)
        assert known is not None, model
        assert known.peft_default == set(table[kind]), model


@pytest.mark.parametrize(
    ("model", "tied", "eos"),
    [
        ("meta-llama/Llama-3.2-1B", True, "<|end_of_text|>"),
        ("meta-llama/Llama-3.1-8B-Instruct", False, "<|eot_id|>"),
        ("Qwen/Qwen2.5-0.5B-Instruct", True, "<|im_end|>"),
        ("Qwen/Qwen3-8B-Base", False, "<|endoftext|>"),
        ("Qwen/Qwen3-4B", True, "<|im_end|>"),
        ("google/gemma-2-9b-it", True, "<eos>"),
        ("microsoft/Phi-3.5-mini-instruct", None, None),
        ("/hub/models--Qwen--Qwen2.5-7B/snapshots/a09a35458c70", False, "<|endoftext|>"),
    ],
)
def test_what_names_tell(model: str, tied: bool | None, eos: str | None) -> None:
    known = family(model)
    assert known is not None
    assert known.ties(model) is tied
    assert known.end_token(model) == eos


@pytest.mark.parametrize(
    "model",
    [None, "", "unsloth/Ministral-3-3B-Instruct-2512", "Qwen/Qwen2.5-VL-3B-Instruct", "acme/x-1b"],
)
def test_unknown_families_stay_unknown(model: str | None) -> None:
    assert family(model) is None


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


@pytest.mark.parametrize("dropout", [None, "0.5", True])
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
    other = dataclasses.replace(tokenizer(), name="Qwen/Qwen2.5-0.5B")
    mine = adapter(base_model_name_or_path="meta-llama/Llama-3.2-1B")
    found = one(base_model_mismatch, adapter=mine, tokenizer=other)
    assert found is not None
    assert found.severity is Severity.CRITICAL
    assert "tokenizer" in found.evidence["named_by"]


def test_tokenizer_saved_with_the_run_is_no_base_model(tmp_path: Path) -> None:
    saved = dataclasses.replace(tokenizer(), name=str(tmp_path))
    with pytest.raises(NotAssessed):
        one(base_model_mismatch, adapter=adapter(), tokenizer=saved)


# --- weights


def write(folder: Path, **tensors: np.ndarray) -> None:
    named = {
        f"base_model.model.model.layers.0.{k.replace('__', '.')}": v for k, v in tensors.items()
    }
    save_file(named, folder / "adapter_model.safetensors")


A = np.ones((2, 8), np.float32)
B = np.full((8, 2), 0.01, np.float32)


def test_weights_alive(tmp_path: Path) -> None:
    write(tmp_path, self_attn__q_proj__lora_A__weight=A, self_attn__q_proj__lora_B__weight=B)
    assert one(adapter_weights_dead, adapter=adapter(path=tmp_path)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_weights_zero(tmp_path: Path, dtype) -> None:
    write(
        tmp_path,
        self_attn__q_proj__lora_A__weight=A.astype(dtype),
        self_attn__q_proj__lora_B__weight=np.zeros_like(B, dtype),
    )
    found = one(adapter_weights_dead, adapter=adapter(path=tmp_path))
    assert found is not None
    assert found.severity is Severity.CRITICAL


def test_one_live_matrix_is_enough(tmp_path: Path) -> None:
    write(
        tmp_path,
        self_attn__q_proj__lora_A__weight=A,
        self_attn__q_proj__lora_B__weight=np.zeros_like(B),
        self_attn__v_proj__lora_B__weight=B,
    )
    assert one(adapter_weights_dead, adapter=adapter(path=tmp_path)) is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_not_finite(tmp_path: Path, value: float) -> None:
    broken = A.copy()
    broken[1, 3] = value
    write(tmp_path, self_attn__q_proj__lora_A__weight=broken, self_attn__q_proj__lora_B__weight=B)
    found = one(adapter_weights_dead, adapter=adapter(path=tmp_path))
    assert found is not None
    assert found.evidence["not_finite"] == 1


def bf16(folder: Path, values: np.ndarray) -> None:
    upper = (values.astype(np.float32).view(np.uint32) >> 16).astype("<u2")
    entry = {"dtype": "BF16", "shape": list(values.shape), "data_offsets": [0, upper.nbytes]}
    header = json.dumps({"x.lora_B.weight": entry, "__metadata__": {"format": "pt"}}).encode()
    body = struct.pack("<Q", len(header)) + header + upper.tobytes()
    (folder / "adapter_model.safetensors").write_bytes(body)


@pytest.mark.parametrize(("value", "dead"), [(0.0, True), (0.5, False), (np.nan, True)])
def test_bfloat16(tmp_path: Path, value: float, dead: bool) -> None:
    bf16(tmp_path, np.full((4, 2), value))
    assert (one(adapter_weights_dead, adapter=adapter(path=tmp_path)) is not None) is dead


def test_file_without_lora_and_tiny_pickle(tmp_path: Path) -> None:
    save_file({"lm_head.weight": A}, tmp_path / "adapter_model.safetensors")
    assert one(adapter_weights_dead, adapter=adapter(path=tmp_path)) is not None
    (tmp_path / "adapter_model.bin").write_bytes(b"PK" + b"\0" * 441)
    found = one(adapter_weights_dead, adapter=adapter(path=tmp_path))
    assert found is not None
    assert found.evidence["bytes"] == 443


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0" * 7,
        b"\xff" * 8,
        struct.pack("<Q", 4) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 4) + b"nope",
        struct.pack("<Q", 10) + b'{"x": {}}\n',
        struct.pack("<Q", 60)
        + b'{"x.lora_B":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}'.ljust(60),
        LFS,
    ],
)
def test_damaged_weights_are_not_judged(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "adapter_model.safetensors").write_bytes(body)
    with pytest.raises(NotAssessed):
        one(adapter_weights_dead, adapter=adapter(path=tmp_path))


def test_lfs_pointers_are_named(tmp_path: Path) -> None:
    for name in ("adapter_model.safetensors", "adapter_model.bin"):
        (tmp_path / name).write_bytes(LFS)
        with pytest.raises(NotAssessed, match="git lfs pull"):
            one(adapter_weights_dead, adapter=adapter(path=tmp_path))
        (tmp_path / name).unlink()


def test_unknown_number_formats_are_not_judged(tmp_path: Path) -> None:
    save_file({"x.lora_B.weight": np.zeros(4, np.int8)}, tmp_path / "adapter_model.safetensors")
    with pytest.raises(NotAssessed, match="I8"):
        one(adapter_weights_dead, adapter=adapter(path=tmp_path))


def test_no_weights_are_not_judged(tmp_path: Path) -> None:
    with pytest.raises(NotAssessed):
        one(adapter_weights_dead, adapter=adapter(path=tmp_path))


# --- capacity_vs_data


@pytest.mark.parametrize(
    ("ratio", "severity"),
    [
        (0.01, None),
        (1.9, None),
        (2.2, Severity.MEDIUM),
        (9.5, Severity.MEDIUM),
        (12, Severity.HIGH),
    ],
)
def test_capacity(tmp_path: Path, ratio: float, severity: Severity | None) -> None:
    facts = tokens(n=200)
    supervised = int(facts.tokens.supervised_counts.sum())
    size = max(round(supervised / ratio / 2), 1)
    write(
        tmp_path,
        q__lora_A__weight=np.ones((1, size), np.float32),
        q__lora_B__weight=np.ones((size, 1), np.float32),
    )
    found = one(capacity_vs_data, adapter=adapter(path=tmp_path), tokens=facts)
    assert (found and found.severity) == severity
    if found is not None:
        assert found.evidence["trainable_parameters"] == 2 * size
        assert found.evidence["supervised_tokens"] == supervised


def test_spare_capacity_is_info_at_most(tmp_path: Path) -> None:
    write(
        tmp_path,
        q__lora_A__weight=np.ones((64, 5000), np.float32),
        q__lora_B__weight=np.ones((5000, 64), np.float32),
    )
    found = one(capacity_vs_data, adapter=adapter(path=tmp_path), tokens=tokens(n=1))
    assert found is not None
    assert found.severity is Severity.INFO


def test_unknown_capacity_is_not_judged(tmp_path: Path) -> None:
    with pytest.raises(NotAssessed):
        one(capacity_vs_data, adapter=adapter(path=tmp_path), tokens=tokens(n=5))


# --- target_modules_unmatched


def test_unmatched_by_family() -> None:
    given = adapter(
        base_model_name_or_path="microsoft/phi-2",
        target_modules=["qkv_proj", "out_proj", "dense", "dense_h_to_4h", "dense_4h_to_h"],
    )
    found = one(target_modules_unmatched, adapter=given)
    assert found is not None
    assert found.severity is Severity.MEDIUM
    assert "dense" not in found.evidence["unmatched"]


def test_one_unmatched_of_many_is_low() -> None:
    given = adapter(
        base_model_name_or_path="Qwen/Qwen2.5-7B",
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "Wqkv"],
    )
    found = one(target_modules_unmatched, adapter=given)
    assert found is not None
    assert found.severity is Severity.LOW


@pytest.mark.parametrize(
    "targets",
    [
        ["q_proj", "v_proj", "lm_head", "embed_tokens"],
        ["self_attn.q_proj"],
        ["model.layers.3.mlp.down_proj"],
        "all-linear",
        ["all-linear"],
        None,
    ],
)
def test_matched(targets) -> None:
    given = adapter(base_model_name_or_path="Qwen/Qwen2.5-7B", target_modules=targets)
    assert one(target_modules_unmatched, adapter=given) is None


@pytest.mark.parametrize("facts", [{"target_modules": ".*q_proj"}, {"target_modules": ["q_proj"]}])
def test_unknown_modules_are_not_judged(facts: dict) -> None:
    with pytest.raises(NotAssessed):
        one(target_modules_unmatched, adapter=adapter(**facts))


def test_unmatched_by_weights(tmp_path: Path) -> None:
    write(tmp_path, self_attn__q_proj__lora_A__weight=A, self_attn__q_proj__lora_B__weight=B)
    given = adapter(path=tmp_path, target_modules=["q_proj", "self_attn.q_proj", "query"])
    found = one(target_modules_unmatched, adapter=given)
    assert found is not None
    assert found.evidence["unmatched"] == ["query"]
    assert found.evidence["known_by"] == "the adapter's weights"


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
