"""Conversations without a template to write them with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._data_grade import plural
from gradian_checks._data_template import MESSAGES
from gradian_core.audit.facts import ExampleFacts, TokenizerFacts
from gradian_core.audit.samples import chat_rows, tokenizer
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_NO_TEMPLATE = (None, "", "none", "empty", "tokenizer_default")


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {"examples": chat_rows(n=20), "tokenizer": tokenizer(chat_template=None)},
    clean=lambda: {"examples": chat_rows(n=20), "tokenizer": tokenizer()},
)
def no_chat_template(
    examples: ExampleFacts,
    tokenizer: TokenizerFacts,
    training: TrainingConfig | None = None,
) -> Iterator[Finding]:
    """Chat data but no chat template.

    Why it matters: without a template nothing tells the turns apart. The trainer refuses the
    rows or joins them in a way of its own, prompts get loss as well, and at inference there is
    no form in which the model was trained to be asked.

    How to fix: use the tokenizer of the instruct model, or set a template before training and
    save it with the adapter.

    Threshold: rows of messages and no template, neither in the tokenizer (its config or
    ``chat_template.jinja``) nor in the run's settings (axolotl's ``chat_template``,
    LLaMA-Factory's ``template``, a template that the script sets), is high. Rows of plain text
    or of prompt and completion need none: info.

    Not assessed: never.
    """
    if tokenizer.chat_template is not None:
        return
    named = None if training is None else training.get("chat_template")
    if named not in _NO_TEMPLATE:
        return
    counts = np.bincount(examples.shapes, minlength=len(examples.shape_names))
    shapes = {name: int(n) for name, n in zip(examples.shape_names, counts, strict=True)}
    chats = sum(n for name, n in shapes.items() if _holds_messages(name, examples))
    if not chats:
        yield Finding(
            id="data.no_chat_template",
            severity=Severity.INFO,
            title="The tokenizer has no chat template; the rows need none",
            detail="They are plain text, so the model has to be asked in plain text too.",
            evidence={"tokenizer": tokenizer.name, "shapes": shapes},
        )
        return
    yield Finding(
        id="data.no_chat_template",
        severity=Severity.HIGH,
        title=f"{plural(chats, 'row')} of messages, and no chat template",
        detail=f"Neither the tokenizer ({tokenizer.name}) nor the run names a template: nothing "
        "tells the turns apart, and there is loss on prompts as well.",
        fix="Use the tokenizer of the instruct model, or set tokenizer.chat_template before "
        "training and save it with the adapter.",
        evidence={"rows": chats, "tokenizer": tokenizer.name, "shapes": shapes},
    )


def _holds_messages(shape: str, examples: ExampleFacts) -> bool:
    # prompt and completion may be lists of messages as well: then roles were written.
    return shape in MESSAGES or (shape.startswith("prompt") and bool(examples.roles))
