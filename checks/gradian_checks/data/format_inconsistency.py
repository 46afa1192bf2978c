"""Rows that do not share one form."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from gradian_checks._data_grade import pick_ids, plural
from gradian_checks._data_rows import read, spread
from gradian_checks._data_text import answer_label
from gradian_core.audit.facts import ExampleFacts, Style
from gradian_core.audit.hashing import EMPTY
from gradian_core.audit.samples import items, rows
from gradian_core.check import check
from gradian_core.data.turns import ROLES
from gradian_core.findings import Finding, Severity

SPLIT = (0.05, 0.95)
"""A style that fewer or more of the answers have is an accident, or the rule."""
FEWEST_ROWS = 20
_SAMPLE = 1000
_ASKED = 0.5
_STRUCTURE = re.compile(r"json|\bschema|\barray|\bdict|\blist\b|\bformat|[{}]", re.IGNORECASE)
_OWN_KINDS = frozenset({"function_call", "developer"})
"""Roles that say something else than the plain name of their role."""


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {
        "examples": rows(
            items=[*items(50), {"messages": [{"role": "user", "content": "Where is the market?"}]}]
        )
    },
    clean=lambda: {"examples": rows(n=100)},
)
def format_inconsistency(examples: ExampleFacts) -> Iterator[Finding]:
    """Mixed target formats.

    Why it matters: a model learns the form of the answers before their content, and from two
    forms it learns to toss a coin. Rows of different shapes or role names reach the trainer by
    different paths, or not at all.

    How to fix: bring all rows into one shape, one set of role names and one style of answer.

    Threshold: more than one row shape, or more than one name for the user or for the assistant,
    is medium. A style that 5 to 95 % of the answers have is low: a label that says no more than
    *answer*, white space at the end or the beginning, JSON (or fenced blocks) beside prose for
    one and the same task. Styles need 20 rows.

    No finding for what is different for a reason: tool, function call and observation roles, a
    system message in some rows, JSON that only some tasks ask for.

    Not assessed: never.
    """
    yield from _shapes(examples)
    yield from _role_names(examples.roles)
    yield from _styles(examples)


def _shapes(examples: ExampleFacts) -> Iterator[Finding]:
    if len(examples.shape_names) < 2:
        return
    counts = np.bincount(examples.shapes, minlength=len(examples.shape_names))
    shares = {name: int(n) for name, n in zip(examples.shape_names, counts, strict=True)}
    usual = int(counts.argmax())
    odd = np.flatnonzero(examples.shapes != usual)
    yield Finding(
        id="data.format_inconsistency",
        severity=Severity.MEDIUM,
        title=f"Rows come in {len(shares)} shapes: {_listed(shares)}",
        detail="Trainers take the columns of one shape; rows of another one arrive by another "
        "path, or are lost.",
        fix=f"Write all rows as {examples.shape_names[usual]}.",
        evidence={"shapes": shares},
        example_ids=pick_ids(examples.ids, odd),
    )


def _role_names(roles: Mapping[str, int]) -> Iterator[Finding]:
    names: dict[str, dict[str, int]] = defaultdict(dict)
    for name, count in roles.items():
        meaning = ROLES.get(name.lower())
        if meaning in ("user", "assistant") and name.lower() not in _OWN_KINDS:
            names[meaning][name] = count
    mixed = {meaning: found for meaning, found in names.items() if len(found) > 1}
    if not mixed:
        return
    told = "; ".join(
        f"the {meaning} is called {_listed(mixed[meaning])}" for meaning in sorted(mixed)
    )
    yield Finding(
        id="data.format_inconsistency",
        severity=Severity.MEDIUM,
        title=f"Mixed role names: {told}",
        detail="Chat templates compare role names letter by letter: turns with an unknown one "
        "are refused, skipped or written without markup.",
        fix="Use one name for each role: user and assistant.",
        evidence={"roles": dict(roles)},
    )


def _styles(examples: ExampleFacts) -> Iterator[Finding]:
    answers = np.flatnonzero(
        (examples.answer != 0) & (examples.answer != EMPTY) & ~examples.has_tool_calls
    )
    if len(answers) < FEWEST_ROWS:
        return
    styles = examples.styles[answers]
    for flag, where in ((Style.TRAILING_SPACE, "end"), (Style.LEADING_SPACE, "start")):
        chosen = answers[(styles & flag) != 0]
        if _is_split(len(chosen), len(answers)):
            yield _style(examples, chosen, answers, f"{where} with white space", "Strip answers.")
    yield from _labels(examples, answers)
    yield from _structured(examples, answers)


def _labels(examples: ExampleFacts, answers: NDArray[np.int64]) -> Iterator[Finding]:
    labelled = answers[(examples.styles[answers] & Style.LABELLED) != 0]
    if len(labelled) < SPLIT[0] * len(answers):
        return
    sample = spread(labelled, _SAMPLE)
    seen = Counter(answer_label(row.answer or "") for _, row in read(examples, sample))
    del seen[None]
    label, count = max(seen.items(), key=lambda item: (item[1], item[0] or ""), default=("", 0))
    if not _is_split(count * len(labelled) // len(sample), len(answers)):
        return
    has = (answer_label(row.answer or "") == label for _, row in read(examples, labelled))
    chosen = labelled[np.fromiter(has, np.bool_, len(labelled))]
    if _is_split(len(chosen), len(answers)):
        words = f"start with the label “{label}:”"
        yield _style(examples, chosen, answers, words, "Remove the label, or put it everywhere.")


def _structured(examples: ExampleFacts, answers: NDArray[np.int64]) -> Iterator[Finding]:
    """JSON or fenced answers beside prose, where nothing tells that some tasks ask for them."""
    for flag, words in ((Style.JSON, "are JSON"), (Style.FENCED, "start with a code fence")):
        chosen = answers[(examples.styles[answers] & flag) != 0]
        if not _is_split(len(chosen), len(answers)):
            continue
        ours, asked = _tasks(examples, chosen)
        theirs, _ = _tasks(examples, np.setdiff1d(answers, chosen))
        known = min(ours.total(), theirs.total())
        if known:
            # One task on both sides: its answers come in either form.
            stray = 2 * (ours & theirs).total() >= known
        else:
            stray = flag is Style.JSON and asked < _ASKED
        if stray:
            yield _style(examples, chosen, answers, words, "Use one form of answer for one task.")


def _tasks(examples: ExampleFacts, positions: NDArray[np.int64]) -> tuple[Counter[str], float]:
    """Return what rows are told to do, and the share of prompts that speak of structure.

    The task is the system message, else the first line of a prompt of several lines.
    """
    tasks: Counter[str] = Counter()
    asking = 0
    sample = spread(positions, _SAMPLE)
    for _, row in read(examples, sample):
        texts = [turn.content for turn in row.prompt]
        asking += any(_STRUCTURE.search(text) for text in texts)
        head, _, rest = texts[0].strip().partition("\n") if texts else ("", "", "")
        if texts and row.prompt[0].role == "system":
            tasks[texts[0]] += 1
        elif rest:
            tasks[head] += 1
    return tasks, asking / max(len(sample), 1)


def _is_split(count: int, total: int) -> bool:
    return SPLIT[0] * total <= count <= SPLIT[1] * total


def _style(
    examples: ExampleFacts,
    chosen: NDArray[np.int64],
    answers: NDArray[np.int64],
    words: str,
    fix: str,
) -> Finding:
    share = len(chosen) / len(answers)
    fewer = chosen if 2 * len(chosen) <= len(answers) else np.setdiff1d(answers, chosen)
    return Finding(
        id="data.format_inconsistency",
        severity=Severity.LOW,
        title=f"{plural(len(chosen), 'answer')} ({share:.1%}) {words}, the others do not",
        detail="The model learns both styles and chooses by chance.",
        fix=fix,
        evidence={"answers": len(answers), "with_style": len(chosen), "share": share},
        example_ids=pick_ids(examples.ids, fewer),
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in counts.items())
