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
from gradian_core.data.example import Example, Turn
from gradian_core.data.turns import ROLES
from gradian_core.findings import Finding, Severity

SPLIT = (0.05, 0.95)
"""A style that fewer or more of the answers have is an accident, or the rule."""
FEWEST_ROWS = 20
_SAMPLE = 1000
_READ = 5000
_ASKED = 0.5
_FEWEST_BROKEN = 2
_BROKEN_SHARE = 0.02
_SHORT_PROMPT = 400
_CODE = re.compile(r"```|[{};=<>\\]|\bdef |\bfunction\b")
_EMOTICON = re.compile(r"[:;=]['-]?[(\[]")
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
    *answer*, white space at the end or the beginning, JSON beside prose for one and the same
    task. Short prompts that open a bracket and never close it, in 2 % of the rows, are an
    info: text that was cut out of a page. Styles need 20 rows.

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
    yield from _broken_off(examples, answers)


def _labels(examples: ExampleFacts, answers: NDArray[np.int64]) -> Iterator[Finding]:
    labelled = answers[(examples.styles[answers] & Style.LABELLED) != 0]
    if len(labelled) < SPLIT[0] * len(answers):
        return
    looked_at = spread(labelled, _READ)
    found = {i: answer_label(row.answer or "") for i, row in read(examples, looked_at)}
    seen = Counter(label for label in found.values() if label is not None)
    if not seen:
        return
    label = max(seen, key=lambda name: (seen[name], name))
    count = round(seen[label] / len(looked_at) * len(labelled))
    if _is_split(count, len(answers)):
        chosen = np.array([i for i, name in found.items() if name == label], np.int64)
        words = f"start with the label “{label.capitalize()}:”"
        fix = "Remove the label, or put it everywhere."
        yield _style(examples, chosen, answers, words, fix, count=count)


def _structured(examples: ExampleFacts, answers: NDArray[np.int64]) -> Iterator[Finding]:
    """JSON answers beside prose, where nothing tells that only some prompts ask for JSON."""
    chosen = answers[(examples.styles[answers] & Style.JSON) != 0]
    if not _is_split(len(chosen), len(answers)):
        return
    ours, asked = _tasks(examples, chosen)
    theirs, _ = _tasks(examples, np.setdiff1d(answers, chosen))
    # One task on both sides: its answers come in either form. Else the form is the task's.
    shared = (ours & theirs).total()
    if 2 * shared >= min(ours.total(), theirs.total()) and asked < _ASKED:
        fix = "Use one form of answer for one task."
        yield _style(examples, chosen, answers, "are JSON", fix)


def _broken_off(examples: ExampleFacts, answers: NDArray[np.int64]) -> Iterator[Finding]:
    """Prompts that stop inside a bracket, as text that was cut out of a page does."""
    looked_at = spread(answers, _SAMPLE)
    places = [i for i, row in read(examples, looked_at) if _is_unclosed(row)]
    share = len(places) / len(looked_at)
    if len(places) < _FEWEST_BROKEN or share < _BROKEN_SHARE:
        return
    yield Finding(
        id="data.format_inconsistency",
        severity=Severity.INFO,
        title=f"{share:.1%} of the prompts open a bracket and never close it",
        detail=f"Seen in {plural(len(looked_at), 'row')}. Text that was cut out of pages or "
        "tables often ends like this.",
        evidence={"rows_seen": len(looked_at), "unclosed": len(places), "share": share},
        example_ids=pick_ids(examples.ids, places),
    )


def _is_unclosed(row: Example) -> bool:
    text = row.prompt[-1].content if row.prompt else ""
    if len(text) > _SHORT_PROMPT or _CODE.search(text):
        return False
    text = _EMOTICON.sub(" ", text)
    return any(text.count(left) > text.count(right) for left, right in ("()", "[]"))


def _tasks(examples: ExampleFacts, positions: NDArray[np.int64]) -> tuple[Counter[str], float]:
    """Return what rows are told to do, and the share of prompts that speak of structure.

    The task is the system message, else the first line of a prompt of several lines, else the
    first two words.
    """
    tasks: Counter[str] = Counter()
    asking = 0
    sample = spread(positions, _SAMPLE)
    for _, row in read(examples, sample):
        first = row.prompt[0] if row.prompt else Turn("user", "")
        head, _, rest = first.content.strip().partition("\n")
        if first.role == "system":
            tasks[first.content] += 1
        else:
            tasks[head if rest else " ".join(head.lower().split()[:2])] += 1
        said = (turn.content for turn in row.prompt if turn.role != "system")
        asking += any(_STRUCTURE.search(text) for text in said)
    return tasks, asking / max(len(sample), 1)


def _is_split(count: int, total: int) -> bool:
    return SPLIT[0] * total <= count <= SPLIT[1] * total


def _style(
    examples: ExampleFacts,
    chosen: NDArray[np.int64],
    answers: NDArray[np.int64],
    words: str,
    fix: str,
    *,
    count: int | None = None,
) -> Finding:
    """Return the finding for a style; ``count`` where only some of the rows were looked at."""
    exact = count is None or count == len(chosen)
    count = len(chosen) if count is None else count
    share = count / len(answers)
    fewer = chosen
    if exact and 2 * count > len(answers):
        fewer = np.setdiff1d(answers, chosen)
    return Finding(
        id="data.format_inconsistency",
        severity=Severity.LOW,
        title=f"{'' if exact else 'About '}{plural(count, 'answer')} ({share:.1%}) {words}, the "
        "others do not",
        detail="The model learns both styles and chooses by chance.",
        fix=fix,
        evidence={"answers": len(answers), "with_style": count, "share": share},
        example_ids=pick_ids(examples.ids, fewer),
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in counts.items())
