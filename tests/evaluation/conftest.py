"""Tiny random models with an adapter that does something, and a tokenizer with ChatML."""

from __future__ import annotations

import copy

import pytest
import torch
from peft import LoraConfig, get_peft_model
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    Gemma2Config,
    GPT2Config,
    LlamaConfig,
    PreTrainedTokenizerFast,
)

from gradian_core.data.example import Example, Turn, example_id
from gradian_core.model.loaded import LoadedModel

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"]
VOCAB = 256 + len(SPECIALS)
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_COMMON = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "bos_token_id": 256,
    "eos_token_id": 256,
    "pad_token_id": 259,
}
CONV1D = ["c_attn", "c_proj", "c_fc"]
_DECODER = {
    **_COMMON,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 160,
    "initializer_range": 0.3,
}
CONFIGS = {
    "llama": LlamaConfig(**_DECODER),
    "gemma2": Gemma2Config(**_DECODER, head_dim=8, final_logit_softcapping=3.0, sliding_window=8),
    "gpt2": GPT2Config(
        vocab_size=VOCAB,
        n_positions=160,
        n_embd=32,
        n_layer=2,
        n_head=4,
        bos_token_id=256,
        eos_token_id=256,
        pad_token_id=259,
        initializer_range=0.3,
    ),
    "bloom": BloomConfig(**_COMMON, n_layer=2, n_head=4, initializer_range=0.3),
}


def make_tokenizer(template: str | None = CHATML) -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens([AddedToken(token, special=True) for token in SPECIALS])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token=SPECIALS[0], pad_token=SPECIALS[3]
    )
    tokenizer.chat_template = template
    return tokenizer


def make_base(
    architecture: str = "llama", dtype: torch.dtype = torch.float32, attention: str = "eager"
):
    torch.manual_seed(0)
    config = copy.deepcopy(CONFIGS[architecture])
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    return model.to(dtype).eval()


def make_loaded(
    architecture: str = "llama",
    dtype: torch.dtype = torch.float32,
    *,
    scale: float = 0.3,
    attention: str = "eager",
    **lora,
) -> LoadedModel:
    settings = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear", "lora_dropout": 0.5}
    if architecture == "gpt2":
        lora = {"fan_in_fan_out": True, "target_modules": CONV1D} | lora
    model = get_peft_model(
        make_base(architecture, dtype, attention),
        LoraConfig(task_type="CAUSAL_LM", **(settings | lora)),
    )
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.data = noise * scale
    return LoadedModel(
        model=model.to(dtype).eval(),
        tokenizer=make_tokenizer(),
        device=torch.device("cpu"),
        adapter="default",
    )


def make_example(row: int, prompt: str, answer: str | None) -> Example:
    turns = (Turn("user", prompt),)
    if answer is not None:
        turns += (Turn("assistant", answer),)
    return Example(id=example_id(row, turns=turns), row=row, turns=turns)


@pytest.fixture(scope="session")
def tokenizer():
    return make_tokenizer()


@pytest.fixture(scope="session")
def llama():
    """A base model of its own: tests must not change it."""
    return make_base()


@pytest.fixture
def loaded():
    return make_loaded()


@pytest.fixture(scope="session")
def build():
    """The builders, for tests that need another model."""

    class Build:
        base = staticmethod(make_base)
        loaded = staticmethod(make_loaded)
        tokenizer = staticmethod(make_tokenizer)
        example = staticmethod(make_example)

    return Build
