"""Answers that only repeat the prompt."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gradian_checks._data_grade import grade, pick_ids, plural
from gradian_checks._data_rows import read, spread
from gradian_core.audit.facts import ExampleFacts
from gradian_core.audit.hashing import EMPTY
from gradian_core.audit.samples import items, rows
from gradian_core.check import check
from gradian_core.data.example import Example
from gradian_core.findings import Finding, Severity

STEPS = ((0.05, Severity.MEDIUM), (0.005, Severity.LOW))
NAME_WORDS = 3
"""A text of so few words is often the same in two languages, or a name."""
_SAMPLE = 200
_COMPARED = 2000
_EDITING = 60.0
"""Median likeness of prompt and answer in the other rows that tells an editing task."""


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {
        "examples": rows(
            items=[
                *items(80),
                *(
                    {"prompt": text, "completion": text}
                    for text in (f"Which tram goes to stop {i} of the line?" for i in range(20))
                ),
            ]
        )
    },
    clean=lambda: {"examples": rows(n=100)},
)
def prompt_equals_target(examples: ExampleFacts) -> Iterator[Finding]:
    """Target identical to the prompt.

    Why it matters: rows whose answer is the prompt teach to repeat the question. They come from
    a wrong column name or a failed generation, and are seldom meant.

    How to fix: look at where prompt and answer were taken from; remove the rows or fill in the
    right answers.

    Threshold: above 0.5 % of the rows low, above 5 % medium. Compared are the whole prompt and
    the answer, white space aside; case counts, because correcting it is a task. No finding
    where a system message states the task, for texts of up to three words (names stay the same
    in translation), and where the other answers are close to their prompts as well: that is an
    editing task, in which a right sentence stays as it is.

    Not assessed: never; rows of raw text have no prompt to repeat.
    """
    suspects = np.flatnonzero(
        (examples.asked == examples.answer)
        & (examples.answer != 0)
        & (examples.answer != EMPTY)
        & ~examples.has_tool_calls
    )
    if grade(len(suspects) / max(len(examples), 1), STEPS) is None:
        return
    places = [place for place, row in read(examples, suspects) if _is_echo(row)]
    share = len(places) / len(examples)
    severity = grade(share, STEPS)
    if severity is None or _is_editing(examples, suspects):
        return
    yield Finding(
        id="data.prompt_equals_target",
        severity=severity,
        title=f"{plural(len(places), 'row')} ({share:.1%}) answer with the prompt itself",
        detail="Prompt and answer are the same text. The model learns to repeat the question.",
        fix="Check which columns became prompt and answer; remove these rows or answer them.",
        evidence={"rows": len(places), "share": share},
        example_ids=pick_ids(examples.ids, places),
    )


def _is_echo(example: Example) -> bool:
    prompt = example.prompt
    if len(prompt) != 1 or example.answer is None:
        return False
    text = prompt[0].content.strip()
    return text == example.answer.strip() and len(text.split()) > NAME_WORDS


def _is_editing(examples: ExampleFacts, suspects: NDArray[np.int64]) -> bool:
    """Whether the rows that are no echo have answers close to their prompts."""
    from rapidfuzz import fuzz

    others = np.setdiff1d(np.flatnonzero((examples.asked != 0) & (examples.answer != 0)), suspects)
    if not len(others):
        return False
    scores = [
        fuzz.ratio(row.prompt[-1].content[:_COMPARED], (row.answer or "")[:_COMPARED])
        for _, row in read(examples, spread(others, _SAMPLE))
    ]
    return float(np.median(scores)) >= _EDITING
