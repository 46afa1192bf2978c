"""Loading: what is accepted, what is refused, and with which words."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

from gradian_core.config.models import Config
from gradian_core.errors import CannotRunError, InputError, UsageError
from gradian_core.model.adapter import find_adapter, read_adapter
from gradian_core.model.device import deterministic, resolve_device, resolve_dtype
from gradian_core.model.load import load_model
from gradian_core.model.source import resolve_base


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A base model with tokenizer and a trained adapter on disk."""
    root = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=40,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
    )
    base = AutoModelForCausalLM.from_config(config)
    base.save_pretrained(root / "base")
    words = {f"w{i}": i for i in range(38)} | {"<pad>": 38, "<unk>": 39}
    raw = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="<pad>", unk_token="<unk>", eos_token="w0"
    ).save_pretrained(root / "base")
    tuned = get_peft_model(
        base, LoraConfig(r=2, target_modules=["q_proj", "down_proj"], task_type="CAUSAL_LM")
    )
    for name, parameter in tuned.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    tuned.save_pretrained(root / "adapter")
    return root


@pytest.fixture
def models_dir(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "m")
    return tmp_path / "m"


def config(root, **changes):
    return Config(
        base_model=str(root / "base"), adapter_path=str(root / "adapter"), device="cpu", **changes
    )


def edit_config(folder, **changes):
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def edit_weights(folder, change):
    path = folder / "adapter_model.safetensors"
    save_file(change(load_file(path)), path)


def test_everything_is_frozen_but_lora_and_dropout_is_off(saved):
    loaded = load_model(config(saved))
    assert {n for n, p in loaded.model.named_parameters() if p.requires_grad} == {
        n for n, _ in loaded.model.named_parameters() if "lora_" in n
    }
    assert not any(module.training for module in loaded.model.modules())
    assert loaded.adapter == "default"
    assert loaded.notes == ()


def test_base_and_tuned_come_from_one_model(saved):
    loaded = load_model(config(saved))
    plain = AutoModelForCausalLM.from_pretrained(saved / "base", attn_implementation="eager").eval()
    ids = torch.arange(10)[None]
    with torch.no_grad():
        tuned = loaded.model(input_ids=ids).logits
        with loaded.base() as base:
            off = base(input_ids=ids).logits
        again = loaded.model(input_ids=ids).logits
        expected = plain(input_ids=ids).logits
    assert torch.equal(off, expected)
    assert torch.equal(tuned, again)
    assert not torch.allclose(tuned, off)


def test_float64_reaches_the_adapter(saved):
    loaded = load_model(config(saved, dtype="float64"))
    assert {p.dtype for p in loaded.model.parameters()} == {torch.float64}


def test_without_adapter_the_base_model_is_given(saved):
    loaded = load_model(Config(base_model=str(saved / "base"), device="cpu"))
    assert loaded.adapter is None
    with loaded.base() as model:
        assert model is loaded.model


def test_untrained_adapter_is_refused(models_dir):
    edit_weights(
        models_dir / "adapter",
        lambda w: {n: t * 0 if "lora_B" in n else t for n, t in w.items()},
    )
    with pytest.raises(InputError, match="never trained"):
        load_model(config(models_dir))


def test_nan_adapter_is_refused(models_dir):
    edit_weights(models_dir / "adapter", lambda w: {n: t * float("nan") for n, t in w.items()})
    with pytest.raises(InputError, match="NaN"):
        load_model(config(models_dir))


@pytest.mark.parametrize(
    "change",
    [
        lambda w: {n: t for i, (n, t) in enumerate(sorted(w.items())) if i},
        lambda w: {n.replace("q_proj", "k_proj"): t for n, t in w.items()},
        lambda w: {n: torch.ones(3, 5) for n in w},
        lambda w: {"something.else": torch.ones(2)},
    ],
    ids=["one-missing", "renamed", "other-shapes", "no-lora"],
)
def test_adapter_of_another_base_is_refused(models_dir, change):
    edit_weights(models_dir / "adapter", change)
    with pytest.raises(InputError, match="does not fit the base model"):
        load_model(config(models_dir))


def test_targets_that_the_base_does_not_have_are_refused(models_dir):
    edit_config(models_dir / "adapter", target_modules=["c_attn"])
    with pytest.raises(InputError, match="does not fit the base model"):
        load_model(config(models_dir))


def test_a_base_of_another_name_is_noted(models_dir):
    edit_config(models_dir / "adapter", base_model_name_or_path="meta-llama/Llama-9")
    (note,) = load_model(config(models_dir)).notes
    assert "meta-llama/Llama-9" in note


def test_saved_modules_are_used_and_stay_frozen(saved, models_dir):
    base = AutoModelForCausalLM.from_pretrained(saved / "base")
    lora = LoraConfig(
        r=2, target_modules=["q_proj"], modules_to_save=["lm_head"], task_type="CAUSAL_LM"
    )
    tuned = get_peft_model(base, lora)
    for name, parameter in tuned.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter)
    tuned.save_pretrained(models_dir / "saved")
    loaded = load_model(
        Config(base_model=str(saved / "base"), adapter_path=str(models_dir / "saved"), device="cpu")
    )
    assert not loaded.model.get_base_model().lm_head.modules_to_save.default.weight.requires_grad


# --- what is refused before any weight is loaded ----------------------------------------------


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"peft_type": "IA3"}, "IA3"),
        ({"task_type": "SEQ_CLS"}, "SEQ_CLS"),
    ],
)
def test_other_adapters_are_refused_by_name(models_dir, changes, word):
    edit_config(models_dir / "adapter", **changes)
    with pytest.raises(InputError, match=word):
        read_adapter(models_dir / "adapter")


@pytest.mark.parametrize("content", ["{", "[]", "\xff"])
def test_damaged_adapter_config(models_dir, content):
    (models_dir / "adapter/adapter_config.json").write_text(content, encoding="latin-1")
    with pytest.raises(InputError, match=r"adapter_config\.json"):
        read_adapter(models_dir / "adapter")


def test_mlx_adapter_is_named(models_dir):
    path = models_dir / "adapter/adapter_config.json"
    path.write_text(json.dumps({"lora_parameters": {"rank": 8}}))
    with pytest.raises(InputError, match="mlx-lm"):
        read_adapter(models_dir / "adapter")


def test_run_folder_points_to_its_adapter(models_dir):
    with pytest.raises(InputError, match=r"Did you mean .*adapter"):
        find_adapter(str(models_dir))


def test_whole_model_is_no_adapter(models_dir):
    with pytest.raises(InputError, match="whole model"):
        find_adapter(str(models_dir / "base"))


def test_missing_adapter_and_weights(models_dir):
    with pytest.raises(InputError, match="there is no folder"):
        find_adapter(str(models_dir / "nope"))
    (models_dir / "adapter/adapter_model.safetensors").unlink()
    with pytest.raises(InputError, match="has no adapter_model"):
        read_adapter(models_dir / "adapter")


@pytest.mark.parametrize("file", ["adapter/adapter_model.safetensors", "base/model.safetensors"])
def test_lfs_pointers_are_named(models_dir, file):
    (models_dir / file).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(InputError, match="Git-LFS pointer"):
        load_model(config(models_dir))


def test_pickled_adapter_cannot_run_code(models_dir):
    import pickle

    class Evil:
        def __reduce__(self):
            return (open, (str(models_dir / "owned"), "w"))

    (models_dir / "adapter/adapter_model.safetensors").unlink()
    (models_dir / "adapter/adapter_model.bin").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(InputError, match=r"does not fit|cannot be loaded"):
        load_model(config(models_dir))
    assert not (models_dir / "owned").exists()


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ("", "No base model"),
        ("./nowhere", "there is no file or folder"),
        ("nowhere/at/all", "there is no file or folder"),
        ("missing.gguf", "there is no file or folder"),
    ],
)
def test_bases_that_are_not_there(given, word):
    with pytest.raises(InputError, match=word):
        resolve_base(given)


def test_folders_that_are_no_base(models_dir, tmp_path):
    with pytest.raises(InputError, match="is an adapter"):
        resolve_base(str(models_dir / "adapter"))
    with pytest.raises(InputError, match=r"has no config\.json"):
        resolve_base(str(tmp_path))
    (models_dir / "base/model.safetensors").unlink()
    with pytest.raises(InputError, match="holds no weights"):
        resolve_base(str(models_dir / "base"))
    with pytest.raises(InputError, match="is a file"):
        resolve_base(str(models_dir / "base/config.json"))


def test_files_of_a_base_are_its_weights_and_config(saved):
    names = [path.name for path in resolve_base(str(saved / "base")).files]
    assert names == ["config.json", "model.safetensors"]


# --- devices -----------------------------------------------------------------------------------


def test_devices():
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert resolve_device("auto").type == expected
    with pytest.raises(UsageError, match="is not a device"):
        resolve_device("gpu0")
    with pytest.raises(UsageError, match="not supported"):
        resolve_device("meta")
    with pytest.raises(CannotRunError, match="CUDA devices are visible"):
        resolve_device("cuda:99")


def test_auto_dtype_is_float32_on_a_cpu_only():
    assert resolve_dtype("auto", torch.device("cpu")) == torch.float32
    assert resolve_dtype("auto", torch.device("cuda")) is None
    assert resolve_dtype("bfloat16", torch.device("cpu")) == torch.bfloat16


def test_determinism_is_seeded_and_restored():
    before = torch.random.get_rng_state()
    with deterministic(7):
        first = torch.rand(3)
        assert torch.are_deterministic_algorithms_enabled()
    with deterministic(7):
        assert torch.equal(torch.rand(3), first)
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.equal(torch.random.get_rng_state(), before)
