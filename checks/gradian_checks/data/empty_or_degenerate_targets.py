"""Answers that hold nothing to learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gradian_checks._data_grade import grade, pick_ids, plural
from gradian_checks._data_rows import read
from gradian_checks._data_text import is_placeholder, is_refusal
from gradian_core.audit.facts import ExampleFacts, Style
from gradian_core.audit.hashing import EMPTY
from gradian_core.audit.marks import is_empty_answer
from gradian_core.audit.samples import items, rows
from gradian_core.check import check
from gradian_core.data.example import Example
from gradian_core.findings import Finding, Severity
from gradian_core.text import excerpt

STEPS = ((0.05, Severity.HIGH), (0.01, Severity.MEDIUM), (0.001, Severity.LOW))
STOCK_SHARE = 0.01
"""A placeholder is one if more than this share of the rows have it, word for word."""
STOCK_ROWS = 3
"""And at least so many rows."""
LABEL_SHARE = 0.2
"""With fewer different answers than this share of the rows, answers are labels."""
_LETTER_RUN = 8
"""A letter or digit repeated so often is no word, number or Roman numeral."""


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {
        "examples": rows(items=[*items(50), *({**r, "completion": " "} for r in items(5))])
    },
    clean=lambda: {
        "examples": rows(
            items=[*items(50), {"prompt": "What hides the hills?", "completion": "fog."}]
        )
    },
)
def empty_or_degenerate_targets(examples: ExampleFacts) -> Iterator[Finding]:
    """Empty or trivially short targets.

    Why it matters: an empty answer teaches to end at once; the same *not provided* under many
    questions teaches to give no answer. Both outweigh their number, because they are easy.

    How to fix: remove the rows, or fill in the answers. Where declining is meant, keep the share
    of such rows close to what users will ask.

    Threshold: above 0.1 % of the rows low, above 1 % medium, above 5 % high. Counted are rows
    with an assistant turn that says nothing, rows whose last answer is one character over and
    over, and rows with one and the same placeholder or refusal, if more than 1 % of the rows
    (and at least three) have it. Short is not degenerate: ``0``, ``no``, labels and one-word
    dictionary entries are right answers; nor is a turn that calls a tool without a word. Where
    answers are labels (fewer than 20 % different ones), ``not applicable`` is one of them.

    Not assessed: never; raw text has no answers.
    """
    silent = _empty(examples)
    uniform = _uniform(examples)
    stock, texts = _placeholders(examples)
    places = np.unique(np.concatenate((silent, uniform, stock)))
    share = len(places) / max(len(examples), 1)
    severity = grade(share, STEPS)
    if severity is None:
        return
    parts = []
    if len(silent):
        parts.append(f"{plural(len(silent), 'row')} with an assistant turn that says nothing")
    if len(uniform):
        parts.append(f"{plural(len(uniform), 'row')} with one character over and over")
    parts += [f"{plural(n, 'row')} with “{excerpt(text, 60)}”" for text, n in texts[:3]]
    yield Finding(
        id="data.empty_or_degenerate_targets",
        severity=severity,
        title=f"{plural(len(places), 'row')} ({share:.1%}) "
        f"{'has an answer' if len(places) == 1 else 'have answers'} with nothing to learn in",
        detail=f"{'; '.join(parts)}.",
        fix="Remove these rows or give them answers. If declining is meant, keep few of them.",
        evidence={
            "rows": len(places),
            "share": share,
            "empty": len(silent),
            "one_character": len(uniform),
            "placeholder": len(stock),
            "placeholders": {excerpt(text, 60): count for text, count in texts[:10]},
        },
        example_ids=pick_ids(examples.ids, places),
    )


def _empty(examples: ExampleFacts) -> NDArray[np.int64]:
    marked = np.flatnonzero(examples.styles & Style.EMPTY_TURN)
    return np.array([i for i, row in read(examples, marked) if _trains_on_nothing(row)], np.int64)


def _trains_on_nothing(row: Example) -> bool:
    """Whether an empty assistant turn has weight in the loss."""
    return any(
        turn.role == "assistant"
        and is_empty_answer(turn)
        and not any(turn.extra.get(key) in (0, False) for key in ("weight", "loss_weight", "train"))
        for turn in row.turns
    )


def _uniform(examples: ExampleFacts) -> NDArray[np.int64]:
    marked = np.flatnonzero(examples.styles & Style.ONE_CHARACTER)
    found = []
    for place, row in read(examples, marked):
        text = (row.answer or "").strip()
        if not text[:1].isalnum() or len(text) >= _LETTER_RUN:
            found.append(place)
    return np.array(found, np.int64)


def _placeholders(examples: ExampleFacts) -> tuple[NDArray[np.int64], list[tuple[str, int]]]:
    """Return rows with a frequent placeholder or refusal, and the texts with their counts."""
    answered = np.flatnonzero(
        (examples.answer != 0) & (examples.answer != EMPTY) & ~examples.has_tool_calls
    )
    answers, first, group, counts = np.unique(
        examples.answer[answered], return_index=True, return_inverse=True, return_counts=True
    )
    least = max(STOCK_SHARE * len(examples), STOCK_ROWS - 1)
    frequent = np.flatnonzero(counts > least)
    if not len(frequent) or len(answers) < LABEL_SHARE * len(answered):
        return np.zeros(0, np.int64), []
    texts = {int(g): examples.rows[int(answered[first[g]])].answer or "" for g in frequent}
    stock = {g: text for g, text in texts.items() if is_placeholder(text) or is_refusal(text)}
    sizes = Counter({text: int(counts[g]) for g, text in stock.items()})
    return answered[np.isin(group, list(stock))], sizes.most_common()
