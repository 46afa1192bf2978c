"""Reasoning in the rows that the chat template leaves out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._data_grade import grade, pick_ids
from gradian_checks._data_rows import read, spread
from gradian_checks._data_template import SAMPLE, require_own_template
from gradian_core.audit.facts import ExampleFacts, NotAssessed, Style, TokenizerFacts
from gradian_core.audit.marks import REASONING_KEYS, has_reasoning
from gradian_core.audit.samples import rows, tokenizer
from gradian_core.check import check
from gradian_core.data.example import Turn
from gradian_core.data.template import ChatTemplate, TemplateRefusal
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

LAST_STEPS = ((0.10, Severity.HIGH), (0.01, Severity.MEDIUM))
EARLIER_STEPS = ((0.10, Severity.LOW), (0.01, Severity.INFO))
_PIECE = 60


def _sample(key: str) -> dict[str, object]:
    thought = "The tram stops at the harbour, and the market is next to it."
    answer = {"role": "assistant", "content": "Take the tram.", key: thought}
    if key == "content":
        answer["content"] = f"<think>{thought}</think>Take the tram."
    ask = {"role": "user", "content": "How do I get to the market?"}
    return {"examples": rows(items=[{"messages": [ask, answer]}]), "tokenizer": tokenizer()}


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: _sample("reasoning_content"),
    clean=lambda: _sample("content"),
)
def reasoning_dropped(
    examples: ExampleFacts,
    tokenizer: TokenizerFacts,
    training: TrainingConfig | None = None,
) -> Iterator[Finding]:
    """Reasoning in the data that the chat template leaves out.

    Why it matters: reasoning that the template does not write is not trained on, although the
    rows hold it. A template that does not know ``reasoning_content`` drops it silently, and
    thinking templates strip it from all turns but the last.

    How to fix: put the reasoning into the content, in the tags that the model uses; split
    conversations so that each reasoned answer is the last one.

    Threshold: rows that lose the reasoning of their last answer, above 1 % medium, above 10 %
    high. Rows that lose that of earlier answers, above 1 % info, above 10 % low: thinking
    templates do so by design, and the model is asked in the same way.

    Not assessed: without a chat template, and where the tool has a template of its own. Up to
    400 rows with reasoning are rendered.
    """
    if tokenizer.chat_template is None:
        raise NotAssessed("The tokenizer has no chat template that could leave anything out.")
    require_own_template(training)
    marked = np.flatnonzero(examples.styles & Style.REASONING)
    template = ChatTemplate(tokenizer.tokenizer)
    last: list[int] = []
    earlier: list[int] = []
    seen = 0
    for place, row in read(examples, spread(marked, SAMPLE)):
        try:
            text = template.render(row.turns, row.tools)
        except TemplateRefusal:
            continue
        seen += 1
        thinking = [turn for turn in row.turns if turn.role == "assistant" and has_reasoning(turn)]
        lost = [turn for turn in thinking if not _is_written(turn, text)]
        if not lost:
            continue
        is_last = lost[-1] is row.turns[len(row.prompt)]
        (last if is_last else earlier).append(place)
    scale = len(marked) / seen / len(examples) if seen else 0.0
    for places, steps in ((last, LAST_STEPS), (earlier, EARLIER_STEPS)):
        share = len(places) * scale
        severity = grade(share, steps)
        if severity is not None:
            yield _finding(examples, places, share, severity, is_last=places is last)


def _is_written(turn: Turn, text: str) -> bool:
    """Whether a piece from the middle of the turn's reasoning stands in the rendered text."""
    thought = next((str(turn.extra[key]) for key in REASONING_KEYS if turn.extra.get(key)), None)
    if thought is None:
        thought = turn.content.partition("</think>")[0].rpartition("<think>")[2]
    thought = thought.strip()
    start = max(0, (len(thought) - _PIECE) // 2)
    return thought[start : start + _PIECE].strip() in text


def _finding(
    examples: ExampleFacts, places: list[int], share: float, severity: Severity, *, is_last: bool
) -> Finding:
    which = "the last answer" if is_last else "earlier answers"
    design = "" if is_last else " Thinking templates do so by design."
    return Finding(
        id="data.reasoning_dropped",
        severity=severity,
        title=f"The template leaves out the reasoning of {which} in {share:.1%} of the rows",
        detail=f"It is in the rows and is not trained on.{design}",
        fix="Put the reasoning into the content, in the tags that the model uses."
        if is_last
        else "Split these conversations so that each answer with reasoning is the last one.",
        evidence={"rows_seen": len(places), "share": share, "answer": which},
        example_ids=pick_ids(examples.ids, places),
    )
