"""Questions that the data answers in ways that cannot both be right."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gradian_checks._data_grade import grade, pick_ids, plural
from gradian_checks._data_rows import read
from gradian_checks._data_text import (
    compare_answers,
    final_answer,
    is_placeholder,
    is_refusal,
    script_of,
    word_count,
)
from gradian_core.audit.facts import ExampleFacts
from gradian_core.audit.hashing import EMPTY
from gradian_core.audit.samples import items, rows
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.text import excerpt

STEPS = ((0.10, Severity.HIGH), (0.02, Severity.MEDIUM), (0.005, Severity.LOW))
LONG_WORDS = 40
"""Two answers this long that share few words are two ways to answer, not a contradiction."""
STOCK_QUESTIONS = 3
"""An answer under so many questions is a stock answer, such as a refusal."""
MOST_ROWS = 50_000
"""Of more rows in such questions a regular sample is looked at."""
_GROUP_ANSWERS = 12
"""Different answers of one question that are compared with each other."""
_ANSWER_CHARS = 4000
_OPEN = re.compile(
    r"\b(?:brainstorm|come up with|compose|continue the|create|design|draft|generate|imagine|"
    r"invent|make up|propose|recommend|suggest|surprise me|tell me (?:a|an|something)|write|"
    r"(?:any|random) (?:\w+ )?(?:fact|joke|name|number|quote|story|word)|"
    r"(?:haiku|joke|poem|slogan|story|tagline|tweet))\b"
    r"|\b(?:напиши|придумай|сочини|составь|предложи|schreib|erfinde|escribe|inventa|écris|rédige)",
    re.IGNORECASE,
)

Verdict = Literal["conflict", "reworded"] | None


@dataclass(frozen=True, slots=True)
class _Answer:
    text: str
    stock: bool


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {
        "examples": rows(
            items=[
                *items(40),
                {"prompt": "Translate 'Jew fish' into Warrungu.", "completion": "jidawolo"},
                {"prompt": "Translate 'Jew fish' into Warrungu.", "completion": "golga"},
            ]
        )
    },
    clean=lambda: {
        "examples": rows(
            items=[
                *items(40),
                {"prompt": "When does it start?", "completion": "It starts at 14:30."},
                {"prompt": "When does it start?", "completion": "The event starts at 14:30."},
            ]
        )
    },
)
def conflicting_answers(examples: ExampleFacts) -> Iterator[Finding]:
    """Same question, disagreeing answers.

    Why it matters: two rows that pull in opposite directions cost capacity and leave the model
    with a coin toss. Among planted or merged data they are often the fault itself: a refusal
    beside the answer, an old fact beside the new one.

    How to fix: the finding names the rows; keep the right answer of each question.

    Threshold: rows of such questions above 0.5 % low, above 2 % medium, above 10 % high. The
    question is everything before the last answer: system message, history, prompt and tools.
    Answers disagree if hardly a word is shared (``token_set_ratio`` below 50) and neither
    contains the other, or if they come to different results (a box, ``####``,
    *the answer is*). Most same-question groups of real data are rewordings: those from 50 to
    65 are an info, the rest no finding.

    Not counted as disagreement: working that ends in one result; two long answers (40 words)
    that share few words; prompts that ask for invention; answers in different scripts, which
    are translations; and placeholders, which ``data.empty_or_degenerate_targets`` reports. A
    refusal, or a stock answer under three or more questions, against an answer always counts.

    Not assessed: never; raw text has no question.
    """
    groups = _groups(examples)
    if not groups:
        return
    # Each stands for so many: the text of all of them need not fit into memory.
    each = math.ceil(sum(map(len, groups)) / MOST_ROWS)
    groups = groups[::each]
    texts = _read_groups(examples, groups)
    found: dict[str, list[list[int]]] = defaultdict(list)
    sample = ""
    for members in groups:
        verdict = _judge(texts[members[0]][0], [texts[i][1] for i in members])
        if verdict is not None:
            found[verdict].append(members)
        if verdict == "conflict" and not sample:
            sample = _sample(texts[members[0]][0], [texts[i][1].text for i in members])
    conflicts = found["conflict"]
    places = sorted(i for members in conflicts for i in members)
    share = each * len(places) / len(examples)
    severity = grade(share, STEPS)
    if severity is not None:
        yield Finding(
            id="data.conflicting_answers",
            severity=severity,
            title=f"{'' if each == 1 else 'About '}{plural(each * len(conflicts), 'question')} "
            f"{'has' if len(conflicts) == 1 else 'have'} contradictory answers "
            f"({plural(each * len(places), 'row')}, {share:.1%})",
            detail="The same system message, history and prompt, and answers that cannot both "
            f"be right. {sample}",
            fix="Keep the right answer of each of these questions and remove the others.",
            evidence={
                "questions": each * len(conflicts),
                "rows": each * len(places),
                "share": share,
                "looked_at_one_in": each,
            },
            example_ids=pick_ids(examples.ids, places),
        )
    elif found["reworded"] or conflicts:
        yield _info(examples, found)


def _info(examples: ExampleFacts, found: dict[str, list[list[int]]]) -> Finding:
    groups = [members for kind in ("conflict", "reworded") for members in found[kind]]
    places = sorted(i for members in groups for i in members)
    return Finding(
        id="data.conflicting_answers",
        severity=Severity.INFO,
        title=f"{plural(len(groups), 'question')} "
        f"{'has' if len(groups) == 1 else 'have'} several answers in different words",
        detail="They may all be right: several ways to answer are fine where variety is wanted.",
        evidence={
            "questions": len(groups),
            "rows": len(places),
            "contradictory": len(found["conflict"]),
            "reworded": len(found["reworded"]),
        },
        example_ids=pick_ids(examples.ids, places),
    )


def _groups(examples: ExampleFacts) -> list[list[int]]:
    """Return the positions of each question that has two different answers."""
    answered = (examples.answer != 0) & (examples.answer != EMPTY) & ~examples.has_tool_calls
    positions = np.flatnonzero(answered)
    if not len(positions):
        return []
    order = positions[np.argsort(examples.question[positions], kind="stable")]
    question = examples.question[order]
    starts = np.flatnonzero(np.r_[True, question[1:] != question[:-1]])
    sizes = np.diff(np.r_[starts, len(order)])
    groups = []
    for start, size in zip(starts[sizes > 1], sizes[sizes > 1], strict=True):
        members = order[start : start + size]
        if len(np.unique(examples.answer[members])) > 1:
            groups.append([int(i) for i in members])
    return sorted(groups)


def _read_groups(
    examples: ExampleFacts, groups: Sequence[Sequence[int]]
) -> dict[int, tuple[str, _Answer]]:
    stock = _stock_answers(examples)
    wanted = np.array(sorted(i for members in groups for i in members), np.int64)
    return {
        place: (
            row.prompt[-1].content[:_ANSWER_CHARS] if row.prompt else "",
            _Answer((row.answer or "")[:_ANSWER_CHARS], int(examples.answer[place]) in stock),
        )
        for place, row in read(examples, wanted)
    }


def _stock_answers(examples: ExampleFacts) -> set[int]:
    """Return answers under several questions, in data whose answers are free text.

    Where most rows share their answer with others, answers are labels, and none is stock.
    """
    pairs = np.unique(np.stack((examples.answer, examples.question), axis=1), axis=0)
    answers, questions = np.unique(pairs[:, 0], return_counts=True)
    if 2 * len(answers) < len(examples):
        return set()
    return {int(a) for a in answers[questions >= STOCK_QUESTIONS]}


def _judge(prompt: str, answers: Sequence[_Answer]) -> Verdict:
    distinct = {a.text: a for a in answers if not is_placeholder(a.text)}
    kept = [distinct[text] for text in sorted(distinct)][:_GROUP_ANSWERS]
    verdicts = [_relate(prompt, a, b) for i, a in enumerate(kept) for b in kept[:i]]
    if "conflict" in verdicts:
        return "conflict"
    return "reworded" if "reworded" in verdicts else None


def _relate(prompt: str, left: _Answer, right: _Answer) -> Verdict:
    likeness = compare_answers(left.text, right.text)
    refusals = is_refusal(left.text) + is_refusal(right.text)
    if likeness == "same" or refusals == 2:
        return None
    if refusals or (likeness == "unlike" and left.stock != right.stock):
        return "conflict"
    if likeness == "unlike" and None not in (final_answer(left.text), final_answer(right.text)):
        return "conflict"
    scripts = {script_of(left.text), script_of(right.text)} - {""}
    if _OPEN.search(prompt) or len(scripts) == 2:
        return None
    if likeness == "reworded":
        return "reworded"
    words = min(word_count(left.text), word_count(right.text))
    return "conflict" if words < LONG_WORDS else None


def _sample(prompt: str, answers: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(answers))
    shown = " and ".join(f"“{excerpt(text, 60)}”" for text in distinct[:2])
    return f"For example “{excerpt(prompt, 80)}”: {shown}."
