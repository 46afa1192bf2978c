"""Which modules an adapter's targets reach: attention, MLP, or something unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gradian_checks._families import Family, family
from gradian_core.runs.artifact import AdapterInfo

__all__ = ["ALL_LINEAR", "Targets", "matches", "named_targets", "targets"]

ALL_LINEAR = frozenset({"all-linear", "all", "all_linear"})
"""Words for all linear layers of the model's blocks."""
_ATTENTION = frozenset(
    [
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "out_proj",
        "qkv_proj",
        "query_key_value",
        "c_attn",
        "wqkv",
        "w_pack",
        "wq",
        "wk",
        "wv",
        "wo",
        "query",
        "key",
        "value",
        "query_proj",
        "value_proj",
        "qkv",
        "q_a_proj",
        "q_b_proj",
        "kv_a_proj_with_mqa",
        "kv_b_proj",
        "att_proj",
        "attn_out",
        "dense",
    ]
)
_MLP = frozenset(
    [
        "gate_proj",
        "up_proj",
        "down_proj",
        "gate_up_proj",
        "fc1",
        "fc2",
        "fc_in",
        "fc_out",
        "w1",
        "w2",
        "w3",
        "dense_h_to_4h",
        "dense_4h_to_h",
        "c_fc",
        "c_proj",
        "ff_proj",
        "ff_out",
        "gate_and_up_proj",
    ]
)
_NEITHER = frozenset({"lm_head", "embed_tokens", "wte", "wpe", "output", "score", "tok_embeddings"})
_MLP_WORDS = re.compile(
    r"mlp|feed_forward|ffn|experts|gate_proj|up_proj|down_proj|fc[12]|fc_(?:in|out)|c_fc|c_proj"
    r"|dense_(?:h_to_4h|4h_to_h)|\bw[123]\b"
)
_ATTENTION_WORDS = re.compile(
    r"attn|attention|[qkvo]_proj|qkv|query_key_value|c_attn|wqkv|out_proj", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Targets:
    """What an adapter's targets reach.

    Parameters
    ----------
    attention, mlp
        Names that reach attention and MLP; of a regular expression, its text.
    unknown
        Names whose place is not known.
    everything
        All linear layers are adapted.
    by_default
        No targets are given; these are PEFT's for the model family.
    missed
        Names that a known model does not have.
    """

    attention: tuple[str, ...] = ()
    mlp: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    everything: bool = False
    by_default: bool = False
    missed: tuple[str, ...] = ()

    @property
    def misses_mlp(self) -> bool:
        """Whether a name that the model does not have is another family's MLP."""
        return any(_MLP_WORDS.search(name) for name in self.missed)


def matches(target: str, module: str) -> bool:
    """Whether a target's name reaches a module: PEFT compares whole dotted ends."""
    return target == module or module.endswith(f".{target}") or target.endswith(f".{module}")


def named_targets(adapter: AdapterInfo) -> tuple[str, ...] | str | None:
    """Return the targets as a sorted tuple of names, a regular expression, or None."""
    given = adapter.raw.get("target_modules")
    if isinstance(given, str):
        return given if re.search(r"[^\w.\-]", given) or given in ALL_LINEAR else (given,)
    if isinstance(given, Iterable):
        names = tuple(sorted(name for name in given if isinstance(name, str)))
        return names or None
    return None


def targets(adapter: AdapterInfo) -> Targets:
    """Return what an adapter's targets reach."""
    given = named_targets(adapter)
    model = family(adapter.base_model)
    if isinstance(given, str):
        return Targets(everything=True) if given in ALL_LINEAR else _expression(given)
    if given is not None and any(name in ALL_LINEAR for name in given):
        return Targets(everything=True)
    excluded = adapter.raw.get("exclude_modules")
    names = tuple(name for name in given or () if not _excluded(name, excluded))
    if given is None:
        # Llama, Qwen, Mistral and Gemma all have these, so an unnamed model gets them as well
        default = model.peft_default if model else frozenset({"q_proj", "v_proj"})
        placed = _place(sorted(default), model)
        return Targets(attention=placed.attention, mlp=placed.mlp, by_default=True)
    placed = _place(names, model)
    experts = adapter.raw.get("target_parameters")
    if isinstance(experts, list) and experts:
        return Targets(placed.attention, (*placed.mlp, *map(str, experts)), placed.unknown)
    return placed


def _place(names: Iterable[str], model: Family | None) -> Targets:
    attention: list[str] = []
    mlp: list[str] = []
    unknown: list[str] = []
    missed: list[str] = []
    for name in names:
        last = name.rsplit(".", 1)[-1].lower()
        if model is not None:
            # a name may reach both: GPT-2 has c_proj in attention and in the MLP
            in_attention = any(matches(name, module) for module in model.attention)
            in_mlp = any(matches(name, module) for module in model.mlp)
            attention += [name] * in_attention
            mlp += [name] * in_mlp
            missed += [name] * (not in_attention and not in_mlp)
        elif "." in name and re.search(r"mlp|feed_forward|ffn|experts", name):
            mlp.append(name)
        elif "." in name and re.search(r"attn|attention", name):
            attention.append(name)
        elif last in _MLP:
            mlp.append(name)
        elif last in _ATTENTION:
            attention.append(name)
        elif last not in _NEITHER:
            unknown.append(name)
    return Targets(tuple(attention), tuple(mlp), tuple(unknown), missed=tuple(missed))


def _expression(pattern: str) -> Targets:
    """Judge a regular expression by the words in it; running one from a file could take forever."""
    if _MLP_WORDS.search(pattern):
        return Targets(mlp=(pattern,))
    if _ATTENTION_WORDS.search(pattern):
        return Targets(attention=(pattern,))
    return Targets(unknown=(pattern,))


def _excluded(name: str, excluded: object) -> bool:
    if isinstance(excluded, str):
        return name == excluded
    return isinstance(excluded, list) and any(name == entry for entry in excluded)
