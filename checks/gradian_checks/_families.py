"""What is known of model families by their names: modules, end tokens, ties, vocabularies.

The audit loads no weights, and often all that it has is the base model's name. What stands here
is from the models' published ``config.json`` and tokenizer files; a family that is not here gives
*not assessed*, never a guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gradian_checks._names import base_name, billions

__all__ = ["Family", "family"]

_LLAMA_ATTENTION = frozenset({"q_proj", "k_proj", "v_proj", "o_proj"})
_LLAMA_MLP = frozenset({"gate_proj", "up_proj", "down_proj"})
_NEOX_MLP = frozenset({"dense_h_to_4h", "dense_4h_to_h"})
_EVERY = float("inf")
_INSTRUCT = re.compile(r"instruct|chat|(?:^|[-_])it(?:$|[-_])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A model family.

    Parameters
    ----------
    name
        Name for people.
    pattern
        Matches the lower-case base name of its models.
    attention, mlp
        Names of its linear layers.
    peft_default
        What PEFT adapts where no target is given.
    eos
        End token of its base models, then that of its instruct models if it is another one.
    vocab
        Tokens in its vocabulary, None where sizes differ.
    tied_up_to
        Models of up to so many billions of parameters share input and output embeddings; None if
        it differs otherwise.
    """

    name: str
    pattern: str
    attention: frozenset[str] = _LLAMA_ATTENTION
    mlp: frozenset[str] = _LLAMA_MLP
    peft_default: frozenset[str] = frozenset({"q_proj", "v_proj"})
    eos: tuple[str, ...] = ()
    vocab: int | None = None
    tied_up_to: float | None = 0.0

    @property
    def modules(self) -> frozenset[str]:
        """All of its linear layers inside blocks."""
        return self.attention | self.mlp

    def ties(self, model: str) -> bool | None:
        """Whether a model of it shares input and output embeddings, None if unknown."""
        if self.tied_up_to is None:
            return None
        if self.tied_up_to in (0.0, _EVERY):
            return bool(self.tied_up_to)
        size = billions(model)
        return None if size is None else size <= self.tied_up_to

    def end_token(self, model: str) -> str | None:
        """Return the end token of a model of it, None if unknown."""
        if not self.eos:
            return None
        name = model.lower()
        # Qwen3 names its base models; the plain name is the chat model
        instruct = "base" not in name if self.name == "Qwen3" else bool(_INSTRUCT.search(name))
        return self.eos[-1 if instruct else 0]


_FAMILIES = (
    Family(
        name="Llama 3.1 / 3.2 / 3.3",
        pattern=r"llama-?3\.[123]",
        eos=("<|end_of_text|>", "<|eot_id|>"),
        vocab=128_256,
        tied_up_to=3.9,
    ),
    Family(
        name="Llama 3",
        pattern=r"llama-?3(?!\.)",
        eos=("<|end_of_text|>", "<|eot_id|>"),
        vocab=128_256,
    ),
    Family(name="TinyLlama", pattern=r"tinyllama", eos=("</s>",), vocab=32_000),
    Family(name="Llama 2", pattern=r"llama-?2|vicuna", eos=("</s>",), vocab=32_000),
    Family(name="SmolLM", pattern=r"smollm2?-", vocab=49_152, tied_up_to=2.0),
    Family(
        name="Mixtral",
        pattern=r"mixtral",
        mlp=frozenset({"w1", "w2", "w3", "gate"}),
        eos=("</s>",),
        vocab=32_000,
    ),
    Family(name="Mistral 7B", pattern=r"mistral-7b", eos=("</s>",), vocab=32_000),
    Family(
        name="Qwen2 / Qwen2.5",
        pattern=r"qwen-?2(\.5)?-(?!vl|audio|omni)",
        eos=("<|endoftext|>", "<|im_end|>"),
        vocab=151_936,
        tied_up_to=3.9,
    ),
    Family(
        name="Qwen3",
        pattern=r"qwen-?3-(?!vl|next|omni|coder-)(?!\d+b-a\d)",
        eos=("<|endoftext|>", "<|im_end|>"),
        vocab=151_936,
        tied_up_to=4.9,
    ),
    Family(
        name="Gemma",
        pattern=r"gemma(-[123]|-1\.1)?-\d+(\.\d+)?[bm]",
        eos=("<eos>",),
        tied_up_to=_EVERY,
    ),
    Family(
        name="Phi-3 / Phi-4",
        pattern=r"phi-?(3|3\.5|4)(?!-multimodal|-small|-vision)",
        attention=frozenset({"qkv_proj", "o_proj"}),
        mlp=frozenset({"gate_up_proj", "down_proj"}),
        peft_default=frozenset({"qkv_proj"}),
        tied_up_to=None,
    ),
    Family(
        name="Phi-1 / Phi-2",
        pattern=r"phi-?(1|1[._]5|2)(?![.\d])",
        attention=frozenset({"q_proj", "k_proj", "v_proj", "dense"}),
        mlp=frozenset({"fc1", "fc2"}),
        peft_default=frozenset({"q_proj", "v_proj", "fc1", "fc2"}),
        eos=("<|endoftext|>",),
        vocab=51_200,
    ),
    Family(
        name="GPT-2",
        pattern=r"gpt-?2|dialogpt",
        attention=frozenset({"c_attn", "attn.c_proj"}),
        mlp=frozenset({"c_fc", "mlp.c_proj"}),
        peft_default=frozenset({"c_attn"}),
        eos=("<|endoftext|>",),
        vocab=50_257,
        tied_up_to=_EVERY,
    ),
    Family(
        name="GPT-NeoX / Pythia",
        pattern=r"pythia|gpt-neox|redpajama-incite|dolly-v",
        attention=frozenset({"query_key_value", "dense"}),
        mlp=_NEOX_MLP,
        peft_default=frozenset({"query_key_value"}),
        eos=("<|endoftext|>",),
        vocab=50_432,
    ),
    Family(
        name="Falcon",
        pattern=r"falcon-(7b|40b|rw)",
        attention=frozenset({"query_key_value", "dense"}),
        mlp=_NEOX_MLP,
        peft_default=frozenset({"query_key_value"}),
        eos=("<|endoftext|>",),
        tied_up_to=None,
    ),
    Family(
        name="BLOOM",
        pattern=r"bloomz?-",
        attention=frozenset({"query_key_value", "dense"}),
        mlp=_NEOX_MLP,
        peft_default=frozenset({"query_key_value"}),
        eos=("</s>",),
        vocab=250_880,
        tied_up_to=_EVERY,
    ),
    Family(
        name="OPT",
        pattern=r"opt-\d",
        attention=frozenset({"q_proj", "k_proj", "v_proj", "out_proj"}),
        mlp=frozenset({"fc1", "fc2"}),
        eos=("</s>",),
        vocab=50_272,
        tied_up_to=_EVERY,
    ),
    Family(
        name="GPT-J",
        pattern=r"gpt-?j-",
        attention=frozenset({"q_proj", "k_proj", "v_proj", "out_proj"}),
        mlp=frozenset({"fc_in", "fc_out"}),
        eos=("<|endoftext|>",),
        vocab=50_400,
    ),
    Family(
        name="MPT",
        pattern=r"mpt-\d",
        attention=frozenset({"Wqkv", "out_proj"}),
        mlp=frozenset({"up_proj", "down_proj"}),
        peft_default=frozenset({"Wqkv"}),
        eos=("<|endoftext|>",),
        vocab=50_432,
        tied_up_to=_EVERY,
    ),
    Family(
        name="ChatGLM",
        pattern=r"chatglm[23]?-|glm-4-9b(?!.*hf)",
        attention=frozenset({"query_key_value", "dense"}),
        mlp=_NEOX_MLP,
        peft_default=frozenset({"query_key_value"}),
        tied_up_to=None,
    ),
    Family(
        name="StarCoder2",
        pattern=r"starcoder2",
        attention=_LLAMA_ATTENTION,
        mlp=frozenset({"c_fc", "mlp.c_proj"}),
        eos=("<|endoftext|>",),
        vocab=49_152,
        tied_up_to=None,
    ),
)
_COMPILED = tuple((re.compile(rf"(?<![a-z0-9]){f.pattern}"), f) for f in _FAMILIES)


def family(model: str | None) -> Family | None:
    """Return the family of a base model by its name, None if it is not known."""
    if not model:
        return None
    parts = [part for part in re.split(r"[/\\]", model.lower()) if part]
    # a folder's last part may be a date or "final"; the one before then names the model
    for part in (base_name(model), *reversed(parts[-3:-1])):
        # the trailing dash lets patterns tell "gemma-2" from a longer word
        for pattern, found in _COMPILED:
            if pattern.search(f"{part}-"):
                return found
    return None
