"""Tokens of the data whose embeddings nobody trains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradian_checks._data_grade import pick_ids, plural, sample_note
from gradian_checks._families import family
from gradian_core.audit.facts import NotAssessed, TokenFacts, TokenizerFacts
from gradian_core.audit.samples import adapter, chat_items, tokenizer, tokens
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo

_EMBEDDINGS = re.compile(
    r"embed_tokens|word_embeddings|tok_embeddings|embed_in|\bwte\b|lm_head|embed_out|output_proj"
)
_BASE_LLAMA_3 = re.compile(r"llama-?3(?!.*(?:instruct|chat|-it\b|guard|vision))", re.IGNORECASE)
_LLAMA_3_UNTRAINED = ("<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>")
"""Rows of Llama 3's base embedding that pre-training never touched."""


def _sample(**raw: object) -> dict[str, object]:
    made = replace(tokenizer(), model_vocab_size=256)
    return {
        "tokenizer": made,
        "tokens": tokens(items=chat_items(20), tokenizer=made),
        "adapter": adapter(**raw),
    }


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=_sample,
    clean=lambda: _sample(modules_to_save=["embed_tokens", "lm_head"]),
)
def added_tokens_untrained(
    tokenizer: TokenizerFacts, tokens: TokenFacts, adapter: AdapterInfo
) -> Iterator[Finding]:
    """New tokens in the data, and embeddings that are not trained.

    Why it matters: LoRA on linear layers leaves embeddings and output layer as they are. A
    token that was added for the run starts as noise and stays noise: the model reads it as
    noise and hardly ever writes it, the end token least of all.

    How to fix: train the new rows (``trainable_token_indices`` in peft), or the whole layers
    (``modules_to_save=["embed_tokens", "lm_head"]``), or use a format without new tokens.

    Threshold: the rows use tokens beyond the base model's vocabulary and nothing trains the
    embeddings: high. They use tokens that the base model has but was never trained on (Llama 3
    base: ``<|eot_id|>`` and the header tokens): medium.

    Not assessed: where the size of the base model's vocabulary is not known, unless it is one
    of the known cases; for adapters that are not LoRA.
    """
    if adapter.peft_type.upper() not in ("LORA", "ADALORA"):
        raise NotAssessed(f"The adapter is {adapter.peft_type}, not LoRA.")
    if _trains_embeddings(adapter):
        return
    used = np.unique(tokens.tokens.input_ids)
    spared = _trained_tokens(adapter)
    untrained = _known_untrained(tokenizer, adapter, used)
    size = _vocabulary_size(tokenizer, adapter)
    if size is not None:
        new = [int(i) for i in used[used >= size] if int(i) not in spared]
        if new:
            yield _finding(
                tokenizer, tokens, new, Severity.HIGH, "beyond the base model's vocabulary"
            )
            return
    rest = [i for i in untrained if i not in spared]
    if rest:
        yield _finding(
            tokenizer, tokens, rest, Severity.MEDIUM, "that the base model was never trained on"
        )
    elif size is None:
        raise NotAssessed("The size of the base model's vocabulary is not known.")


def _vocabulary_size(tokenizer: TokenizerFacts, adapter: AdapterInfo) -> int | None:
    if tokenizer.model_vocab_size is not None:
        return tokenizer.model_vocab_size
    known = family(adapter.base_model)
    return None if known is None else known.vocab


def _trains_embeddings(adapter: AdapterInfo) -> bool:
    names = [adapter.raw.get(key) for key in ("modules_to_save", "target_modules")]
    flat = " ".join(
        str(v) if not isinstance(v, (list, tuple)) else " ".join(map(str, v)) for v in names
    )
    return _EMBEDDINGS.search(flat) is not None


def _trained_tokens(adapter: AdapterInfo) -> frozenset[int]:
    value = adapter.raw.get("trainable_token_indices")
    groups = value.values() if isinstance(value, dict) else [value]
    return frozenset(
        int(i)
        for group in groups
        if isinstance(group, (list, tuple))
        for i in group
        if isinstance(i, int)
    )


def _known_untrained(
    tokenizer: TokenizerFacts, adapter: AdapterInfo, used: NDArray[np.int32]
) -> list[int]:
    if not _BASE_LLAMA_3.search(Path(adapter.base_model or "").name):
        return []
    vocabulary = tokenizer.tokenizer.get_vocab()
    ids = [vocabulary[text] for text in _LLAMA_3_UNTRAINED if text in vocabulary]
    return [i for i in ids if i in used]


def _finding(
    tokenizer: TokenizerFacts, tokens: TokenFacts, ids: list[int], severity: Severity, what: str
) -> Finding:
    names = [str(tokenizer.tokenizer.convert_ids_to_tokens(i)) for i in ids]
    hits = np.flatnonzero(np.isin(tokens.tokens.input_ids, ids))
    rows = np.unique(np.searchsorted(tokens.tokens.offsets, hits, side="right") - 1)
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return Finding(
        id="data.added_tokens_untrained",
        severity=severity,
        title=f"{plural(len(ids), 'token')} {what}, and embeddings that are not trained: {listed}",
        detail=f"{plural(len(rows), 'row')} use them. The adapter trains neither the embeddings "
        f"nor the output layer, so they keep what they started with.{sample_note(tokens)}",
        fix=f"Set trainable_token_indices={ids[:8]} in the LoRA config, or "
        'modules_to_save=["embed_tokens", "lm_head"].',
        evidence={
            "tokens": names[:50],
            "ids": ids[:50],
            "rows": len(rows),
        },
        # Nearly always all rows, whose ids would say nothing.
        example_ids=pick_ids(tokens.tokens.ids, rows) if 2 * len(rows) < len(tokens.tokens) else (),
    )
