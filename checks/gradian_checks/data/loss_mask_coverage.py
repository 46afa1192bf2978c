"""Which tokens the loss is taken on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from gradian_checks._data_grade import plural, sample_note
from gradian_checks._data_rows import read, spread
from gradian_checks._data_template import MESSAGES, SAMPLE, has_markers
from gradian_checks._data_tool import is_loss_stated, loss_on
from gradian_core.audit.facts import ExampleFacts, NotAssessed, TokenFacts, TokenizerFacts
from gradian_core.audit.samples import items, tokens, training
from gradian_core.check import check
from gradian_core.data.supervision import render
from gradian_core.data.template import ChatTemplate, TemplateRefusal
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

LEAST_SHARE = 0.01
TINY_ANSWER = 32
"""Answers of fewer tokens are meant to be a small part of long prompts."""
MOST_APART = 0.05


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {
        "tokens": tokens(n=20),
        "training": training("transformers", collator="DataCollatorForLanguageModeling"),
    },
    clean=lambda: {"tokens": tokens(items=items(20)), "training": training(train_on_prompt=False)},
)
def loss_mask_coverage(
    training: TrainingConfig | None = None,
    tokens: TokenFacts | None = None,
    examples: ExampleFacts | None = None,
    tokenizer: TokenizerFacts | None = None,
) -> Iterator[Finding]:
    """Fraction of tokens the loss is computed on.

    Why it matters: what has loss is what is learned. Loss on prompts teaches to write
    questions, which can be meant; a mask that is not what the config asks for never is.

    How to fix: set what is meant (``completion_only_loss``, ``assistant_only_loss``,
    ``train_on_inputs``, ``mask_prompt``, a responses-only collator), and mend the template's
    ``{% generation %}`` markers where they are what decides.

    Threshold: what the template's markers mark and where the answers are differs in more than
    5 % of the text, where the run uses the markers: high. Loss on all tokens of chat
    or prompted rows: low, because it is a choice. Less than 1 % of the tokens with loss, with
    answers of 32 tokens or more: medium.

    Not assessed: where neither rows nor a run say what has loss. Raw text has loss everywhere,
    as it must.
    """
    if training is None and tokens is None:
        raise NotAssessed("Needs the tokens of the rows, or a run that says what has loss.")
    stage = None if training is None else training.get("stage")
    if stage not in (None, "sft"):
        raise NotAssessed(f"The run is {stage}: its loss is not on answers alone by nature.")
    raw = None if examples is None else bool((examples.turns == 0).all())
    if raw:
        raise NotAssessed("The rows are raw text, which has loss everywhere.")
    if tokens is None and not is_loss_stated(training):
        raise NotAssessed("The run does not say what its loss is taken on.")
    loss = loss_on(training, prompted=_is_prompted(examples))
    if loss == "all":
        yield _everything(training, tokens)
        return
    if tokens is None:
        return
    if loss == "markers" and examples is not None and tokenizer is not None:
        yield from _markers(examples, tokens, tokenizer)
    yield from _share(tokens)


def _is_prompted(examples: ExampleFacts | None) -> bool | None:
    """Whether most rows have a completion of their own; None where trl takes no such rows."""
    if examples is None:
        return None
    counts = np.bincount(examples.shapes, minlength=len(examples.shape_names))
    usual = examples.shape_names[int(counts.argmax())]
    if usual.startswith("prompt"):
        return True
    return False if usual in MESSAGES else None


def _everything(training: TrainingConfig | None, tokens: TokenFacts | None) -> Finding:
    evidence: dict[str, object] = {} if training is None else {"tool": training.tool}
    told = ""
    if tokens is not None:
        rows = tokens.tokens
        share = float(rows.full_supervised.sum()) / max(int(rows.full_lengths.sum()), 1)
        told = f" Answers are {share:.1%} of the tokens; the rest is prompts and markup."
        evidence["answer_share"] = share
    return Finding(
        id="data.loss_mask_coverage",
        severity=Severity.LOW,
        title="The loss is taken on prompts as well as on answers",
        detail=f"That can be meant: with short answers it may even help.{told}",
        fix="If only answers are to be learned, set completion_only_loss or assistant_only_loss "
        "(trl), train_on_inputs: false (axolotl), mask_prompt (mlx-lm), or a collator that masks.",
        evidence=evidence,
    )


def _share(tokens: TokenFacts) -> Iterator[Finding]:
    rows = tokens.tokens
    supervised = rows.full_supervised
    answered = supervised[supervised > 0]
    if not len(answered):
        return
    share = float(supervised.sum()) / max(int(rows.full_lengths.sum()), 1)
    if share >= LEAST_SHARE or float(np.median(answered)) < TINY_ANSWER:
        return
    yield Finding(
        id="data.loss_mask_coverage",
        severity=Severity.MEDIUM,
        title=f"Only {share:.2%} of the tokens have loss",
        detail=f"{int(supervised.sum()):,} of {int(rows.full_lengths.sum()):,} tokens, in "
        f"{plural(len(rows), 'row')}. Nearly all computing goes into prompts.{sample_note(tokens)}",
        fix="Shorten the prompts, or check that the answers were found: is a turn missing?",
        evidence={"share": share, "supervised": int(supervised.sum())},
    )


def _markers(
    examples: ExampleFacts, tokens: TokenFacts, tokenizer: TokenizerFacts
) -> Iterator[Finding]:
    """Compare what the template marks with where the answers are, character by character."""
    if tokenizer.chat_template is None or not has_markers(tokenizer.chat_template):
        return
    template = ChatTemplate(tokenizer.tokenizer)
    marked = said = apart = written = 0
    chats = np.flatnonzero((examples.turns > 0) & (examples.answer != 0))
    for _, row in read(examples, spread(chats, SAMPLE)):
        try:
            text, spans = template.render_marked(row.turns, row.tools)
            answers = render(row, template, "all")
        except TemplateRefusal:
            continue
        ours, theirs = _mask(text, spans), _mask(text, answers.spans or ())
        written += len(text)
        marked += int(ours.sum())
        said += int(theirs.sum())
        apart += int((ours != theirs).sum())
    if not written or apart / written <= MOST_APART:
        return
    actual, expected = marked / written, said / written
    yield Finding(
        id="data.loss_mask_coverage",
        severity=Severity.HIGH,
        title=f"The template marks {actual:.0%} of the text as answers, which are {expected:.0%}",
        detail="The loss is taken on what stands between the {% generation %} markers. They are "
        f"not where the answers are.{sample_note(tokens)}",
        fix="Put {% generation %} and {% endgeneration %} around the content of assistant turns "
        "and their end token, and nothing else.",
        evidence={"marked_share": actual, "answer_share": expected, "apart": apart / written},
    )


def _mask(text: str, spans: Iterable[tuple[int, int]]) -> NDArray[np.bool_]:
    mask = np.zeros(len(text), np.bool_)
    for start, end in spans:
        mask[start:end] = True
    return mask
