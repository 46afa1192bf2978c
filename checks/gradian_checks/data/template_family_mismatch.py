"""Markup of one model family in the rows of another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gradian_checks._data_grade import grade, pick_ids, plural
from gradian_core.audit.facts import ExampleFacts, NotAssessed, Style, TokenizerFacts
from gradian_core.audit.samples import rows, tokenizer
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

STEPS = ((0.50, Severity.HIGH), (0.05, Severity.MEDIUM), (0.01, Severity.LOW))
MARKUP: Mapping[Style, str] = {
    Style.INST: "[INST]",
    Style.CHATML: "<|im_start|>",
    Style.HEADER: "<|start_header_id|>",
    Style.GEMMA: "<start_of_turn>",
    Style.ROLE_TAGS: "<|assistant|>",
}
_FAMILIES = {
    "[INST]": ("llama-2", "llama2", "mistral", "mixtral", "codellama", "ministral", "devstral"),
    "<|start_header_id|>": ("llama-3", "llama3"),
    "<start_of_turn>": ("gemma",),
}
"""Model names that are known to use a markup and no other of these."""


def _texts(start: str, end: str) -> dict[str, object]:
    texts = [f"{start}What is at stop {i}?{end}A market." for i in range(20)]
    return {"examples": rows(items=[{"text": t} for t in texts]), "tokenizer": tokenizer()}


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: _texts("[INST] ", " [/INST] "),
    clean=lambda: _texts("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"),
)
def template_family_mismatch(
    examples: ExampleFacts | None = None,
    tokenizer: TokenizerFacts | None = None,
    training: TrainingConfig | None = None,
    adapter: AdapterInfo | None = None,
) -> Iterator[Finding]:
    """Markup of another model family in the data or prompt format.

    Why it matters: ``[INST]`` is markup for Llama 2 and Mistral, and for every other model a
    handful of ordinary letters. What the model knows about turns is not used, and the format
    has to be learned from the data. Inside messages, markup is there twice: the template adds
    its own.

    How to fix: strip the markup and let the model's own chat template write it.

    Threshold: rows of raw text with markup that is neither in the tokenizer's template nor one
    of its tokens, and rows of messages with any markup, above 1 % low, above 5 % medium, above
    half of them high. A prompt format in the run's settings with the markup of another family
    than the base model's is medium.

    Not assessed: without rows or tokenizer, where the run states no prompt format either.
    """
    judged = False
    if examples is not None and tokenizer is not None and len(examples):
        judged = True
        yield from _in_rows(examples, tokenizer)
    stated = _stated_formats(training)
    base = _base(training, adapter)
    if stated and base:
        judged = True
        yield from _in_settings(stated, base)
    if not judged:
        raise NotAssessed("Needs the data set and its tokenizer, or a prompt format in the run.")


def _in_rows(examples: ExampleFacts, tokenizer: TokenizerFacts) -> Iterator[Finding]:
    raw = examples.turns == 0
    own = tokenizer.chat_template or ""
    vocabulary = tokenizer.tokenizer.get_vocab()
    for flag, mark in MARKUP.items():
        marked = (examples.styles & flag) != 0
        foreign = mark not in own and mark not in vocabulary
        hits = {"messages": marked & ~raw, "raw text": marked & raw & foreign}
        for kind, chosen in hits.items():
            places = np.flatnonzero(chosen)
            share = len(places) / len(examples)
            severity = grade(share, STEPS)
            if severity is None:
                continue
            told = (
                "The template writes its own markup around it."
                if kind == "messages"
                else "For this tokenizer it is no token but ordinary letters."
            )
            yield Finding(
                id="data.template_family_mismatch",
                severity=severity,
                title=f"{plural(len(places), 'row')} ({share:.1%}) of {kind} "
                f"{'holds' if len(places) == 1 else 'hold'} the markup {mark}",
                detail=f"{told} The tokenizer is {tokenizer.name}.",
                fix="Strip the markup and write rows as messages, for the chat template of the "
                "model to render.",
                evidence={"rows": len(places), "share": share, "markup": mark, "in": kind},
                example_ids=pick_ids(examples.ids, places),
            )


def _in_settings(stated: str, base: str) -> Iterator[Finding]:
    known = next((m for m, names in _FAMILIES.items() if any(n in base for n in names)), None)
    used = [mark for mark in MARKUP.values() if mark in stated]
    if known is None or not used or known in used:
        return
    yield Finding(
        id="data.template_family_mismatch",
        severity=Severity.MEDIUM,
        title=f"The prompt format writes {used[0]} for a model that knows {known}",
        detail=f"The base model is {base}. For it {used[0]} is no token but ordinary letters.",
        fix="Use the model's own chat template for the prompts.",
        evidence={"markup": used[0], "own_markup": known, "base_model": base},
    )


def _stated_formats(training: TrainingConfig | None) -> str:
    """Return what the run says of data sets and templates, as one text; empty without markup."""
    if training is None:
        return ""
    values: list[Any] = [training.get(name) for name in ("datasets", "chat_template")]
    stated = json.dumps(values, default=str, ensure_ascii=False)
    return stated if any(mark in stated for mark in MARKUP.values()) else ""


def _base(training: TrainingConfig | None, adapter: AdapterInfo | None) -> str:
    named = None if training is None else training.get("base_model")
    if adapter is not None and adapter.base_model:
        named = adapter.base_model
    return str(named or "").lower().replace("meta-llama-3", "llama-3")
