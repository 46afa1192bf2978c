"""Base models from ``.gguf`` files: unpacked exactly, with their tokenizer, or refused."""

from __future__ import annotations

import importlib.metadata

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from gradian_core.config.models import Config
from gradian_core.errors import InputError, MissingExtraError
from gradian_core.index.digests import file_digest, folder_digest
from gradian_core.model.load import load_model, load_tokenizer
from gradian_core.model.source import resolve_base

TEMPLATE = (
    "{% for m in messages %}{{ '<s>' + m['role'] + '\n' + m['content'] + '<e>\n' }}{% endfor %}"
)
TOKENS = ["<unk>", "<s>", "<e>", "Ċ", "Ġ", *"abcde", "ab", "ser", *"sur", "se"]
MERGES = ["a b", "s e", "se r"]
HEADS, KEY_HEADS = 4, 2


def original():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(TOKENS),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS,
        tie_word_embeddings=True,
        attn_implementation="eager",
    )
    return AutoModelForCausalLM.from_config(config).eval()


def interleaved(weight, heads):
    """Rows of a query or key matrix as llama.cpp's rotary embedding wants them."""
    return weight.reshape(heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def write_gguf(path, model, *, without=()):
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(path, "llama")
    config = model.config
    writer.add_name("tiny")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3, 3] + [1] * (len(TOKENS) - 3))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        if name in without or name == "lm_head.weight":
            continue
        weight = tensor
        if "q_proj" in name or "k_proj" in name:
            weight = interleaved(tensor, HEADS if "q_proj" in name else KEY_HEADS)
        new = names.get_name(name, try_suffixes=(".weight",))
        writer.add_tensor(new, weight.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    pytest.importorskip("accelerate")
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.F32.gguf", original())


def test_it_is_the_model_that_was_packed(tiny, capfd):
    loaded = load_model(Config(base_model=str(tiny), device="cpu"))
    ids = torch.arange(12)[None] % len(TOKENS)
    with torch.no_grad():
        torch.testing.assert_close(loaded.model(ids).logits, original()(ids).logits)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_its_weights_are_plain_tensors(tiny, dtype):
    loaded = load_model(Config(base_model=str(tiny), device="cpu", dtype=dtype))
    assert {p.dtype for p in loaded.model.parameters()} == {getattr(torch, dtype)}
    assert {type(m) for m in loaded.model.modules() if hasattr(m, "weight")} >= {torch.nn.Linear}
    assert not getattr(loaded.model, "is_quantized", False)
    assert getattr(loaded.model.config, "quantization_config", None) is None


def test_the_report_is_told(tiny):
    (note,) = load_model(Config(base_model=str(tiny), device="cpu")).notes
    assert "quantisation" in note


def test_its_tokenizer_has_template_and_special_tokens(tiny):
    tokenizer = load_tokenizer(Config(base_model=str(tiny)), resolve_base(str(tiny)))
    assert tokenizer.chat_template == TEMPLATE
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 2, 2)
    assert tokenizer("ab c").input_ids == [10, 4, 7]
    assert tokenizer("<s>user").input_ids[0] == 1


def test_a_tokenizer_that_is_named_wins(tiny, tmp_path):
    load_tokenizer(Config(base_model=str(tiny)), resolve_base(str(tiny))).save_pretrained(tmp_path)
    config = Config(base_model=str(tiny), tokenizer=str(tmp_path))
    assert load_tokenizer(config, resolve_base(str(tiny)))("ab c").input_ids == [10, 4, 7]


def test_the_file_itself_is_what_is_hashed(tiny):
    source = resolve_base(str(tiny))
    assert source.files == (tiny,)
    names = [file.name for file in source.files]
    before = folder_digest(source.folder, names)
    (tiny.parent / "other.gguf").write_bytes(b"another model in the same folder")
    assert folder_digest(source.folder, names) == before
    assert folder_digest(tiny) == file_digest(tiny)


def test_a_file_that_lacks_tensors_is_refused(tmp_path):
    pytest.importorskip("accelerate")
    lacking = "model.layers.1.mlp.up_proj.weight"
    path = write_gguf(tmp_path / "half.gguf", original(), without=(lacking,))
    with pytest.raises(InputError, match=r"lacks 1 of the model's tensors \(model.layers.1.mlp.up"):
        load_model(Config(base_model=str(path), device="cpu"))


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF" + bytes(60), b"no such thing" * 9])
def test_a_damaged_file_is_refused(tmp_path, content):
    pytest.importorskip("gguf")
    path = tmp_path / "damaged.gguf"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"damaged\.gguf cannot be loaded"):
        load_model(Config(base_model=str(path), device="cpu"))


def test_a_pointer_is_no_model(tmp_path):
    pytest.importorskip("gguf")
    path = tmp_path / "pointer.gguf"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(InputError, match="Git-LFS pointer"):
        resolve_base(str(path))


@pytest.mark.parametrize("absent", ["gguf", "accelerate"])
def test_missing_packages_name_the_extra(tmp_path, monkeypatch, absent):
    version = importlib.metadata.version

    def without(name):
        if name == absent:
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.0" if name in {"gguf", "accelerate"} else version(name)

    monkeypatch.setattr(importlib.metadata, "version", without)
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    with pytest.raises(MissingExtraError, match=rf"{absent}.*gradian-ml\[gguf\]"):
        resolve_base(str(path))


def test_a_folder_of_gguf_files_names_one(tmp_path):
    (tmp_path / "model.Q4.gguf").write_bytes(b"GGUF")
    with pytest.raises(InputError, match=r"Did you mean .*model\.Q4\.gguf"):
        resolve_base(str(tmp_path))
