"""Tiny random models of several architectures, with LoRA adapters that are not at zero."""

from __future__ import annotations

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from torch.overrides import TorchFunctionMode
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GPT2Config,
    LlamaConfig,
    MixtralConfig,
    Qwen2Config,
    Qwen3Config,
)

from gradian_core.data.tokens import TokenizedRows
from gradian_core.model.loaded import LoadedModel

VOCAB = 61


class TrueFloat64(TorchFunctionMode):
    """Turn every cast to float32 into one to float64.

    Models of transformers normalise, rotate and take the softmax in float32 whatever their own
    dtype is; that rounding depends on padding and would hide errors above 1e-12. (It does not
    reach what a backward pass recomputes.)
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        args = tuple(torch.float64 if arg is torch.float32 else arg for arg in args)
        kwargs = {k: torch.float64 if v is torch.float32 else v for k, v in kwargs.items()}
        return function(*args, **kwargs)


_SMALL = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "attn_implementation": "eager",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}

MOE = {
    "mixtral-moe": lambda: MixtralConfig(
        **{**_SMALL, "num_local_experts": 4, "num_experts_per_tok": 2}
    ),
}

CONFIGS = {
    "llama-gqa": lambda: LlamaConfig(**_SMALL),
    "llama-tied": lambda: LlamaConfig(**_SMALL, tie_word_embeddings=True),
    "qwen2-biases": lambda: Qwen2Config(**_SMALL),
    "qwen3-qknorm": lambda: Qwen3Config(**_SMALL, head_dim=8),
    "gemma2-softcap": lambda: Gemma2Config(
        **_SMALL, head_dim=8, final_logit_softcapping=5.0, sliding_window=32
    ),
    "gpt2-conv1d": lambda: GPT2Config(
        vocab_size=VOCAB,
        n_positions=64,
        n_embd=32,
        n_layer=2,
        n_head=4,
        attn_implementation="eager",
        bos_token_id=1,
        eos_token_id=2,
    ),
}


class Tokenizer:
    """All that gradients need of a tokenizer."""

    pad_token_id = 0
    eos_token_id = 2


def make_base(architecture: str, *, dtype: torch.dtype = torch.float32):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config({**CONFIGS, **MOE}[architecture]())
    return model.to(dtype)


def make_model(
    architecture: str = "llama-gqa", *, dtype: torch.dtype = torch.float32, **lora
) -> LoadedModel:
    """Base with a LoRA adapter whose B is random, frozen but for LoRA, in eval mode."""
    settings = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear", "lora_dropout": 0.3}
    if "target_parameters" in lora:
        settings["lora_dropout"] = 0.0
    if architecture == "gpt2-conv1d":
        settings["fan_in_fan_out"] = True
    model = get_peft_model(
        make_base(architecture, dtype=dtype),
        LoraConfig(task_type="CAUSAL_LM", **{**settings, **lora}),
        autocast_adapter_dtype=dtype != torch.float64,
    )
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lora_" in name)
        if "lora_B" in name or "lora_embedding" in name or "lora_bias" in name:
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.data = (noise * 0.2).to(parameter.dtype)
    if dtype == torch.float64:
        model = model.double()
    return LoadedModel(
        model=model.eval(), tokenizer=Tokenizer(), device=torch.device("cpu"), adapter="default"
    )


def make_tokens(lengths=(5, 17, 9, 12, 23, 7), *, seed: int = 0) -> TokenizedRows:
    """Random rows; roughly the second half of each is supervised, in two runs."""
    rng = np.random.default_rng(seed)
    ids = [rng.integers(3, VOCAB, size=length).astype(np.int32) for length in lengths]
    masks = []
    for length in lengths:
        mask = np.zeros(length, dtype=bool)
        mask[length // 2 :] = True
        mask[-2] = length <= 6
        masks.append(mask)
    return TokenizedRows(
        ids=tuple(f"{i:012x}-{i}" for i in range(len(lengths))),
        rows=np.arange(len(lengths), dtype=np.int64),
        input_ids=np.concatenate(ids),
        supervised=np.concatenate(masks),
        offsets=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        full_lengths=np.asarray(lengths, dtype=np.int32),
        full_supervised=np.asarray([int(mask.sum()) for mask in masks], dtype=np.int32),
        supervision=np.zeros(len(lengths), dtype=np.uint8),
    )
