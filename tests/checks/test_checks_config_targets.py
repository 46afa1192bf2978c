"""Checks of target modules, and what is known of model families."""

from __future__ import annotations

import pytest

from gradian_checks._families import family
from gradian_checks.config.attention_only_targets import attention_only_targets
from gradian_checks.config.high_lora_dropout import high_lora_dropout
from gradian_checks.config.target_modules_unmatched import target_modules_unmatched
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import adapter, rows
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
    assert found.because_of == "config.target_modules_unmatched"


def test_unknown_attention_names_are_no_cause() -> None:
    qwen = adapter(
        base_model_name_or_path="Qwen/Qwen2.5-7B", target_modules=["q_proj", "v_proj", "Wqkv"]
    )
    found = one(attention_only_targets, adapter=qwen)
    assert found is not None
    assert found.because_of is None


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
