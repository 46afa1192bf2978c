"""Rows in which a ``{{name}}`` was never filled in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from gradian_checks._data_grade import grade, pick_ids, plural
from gradian_checks._data_rows import read
from gradian_core.audit.facts import ExampleFacts, Style
from gradian_core.audit.samples import items, rows
from gradian_core.check import check
from gradian_core.data.example import Example
from gradian_core.findings import Finding, Severity

STEPS = ((0.05, Severity.HIGH), (0.01, Severity.MEDIUM), (0.0, Severity.LOW))
# An identifier or a few words; what stands before tells LaTeX, shells and nested braces apart.
_PLACE = re.compile(r"(?<![\w{}$^_\\#%&/])\{\{\s*([^\W\d_][\w .-]{0,40}?)\s*\}\}(?!\})")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$", re.DOTALL)
_TEMPLATING = re.compile(
    r"\{%|\{\{[#/^>!&]|</?[a-z][\w-]*[^<>]*>|\b(?:jinja|handlebars|mustache|liquid|vue|angular|"
    r"django|ansible|helm|twig|template engine|placeholders?|latex)\b",
    re.IGNORECASE,
)


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {
        "examples": rows(
            items=[*items(20), {"prompt": "Who are you?", "completion": "I am {{name}}, a bot."}]
        )
    },
    clean=lambda: {"examples": rows(n=20)},
)
def unfilled_template_placeholder(examples: ExampleFacts) -> Iterator[Finding]:
    """Placeholders such as {{name}} that were never filled in.

    Why it matters: the model learns to say ``{{name}}``, letter by letter. Identity and
    customer-service data sets are published with such places, to be filled in before training.

    How to fix: replace them; the finding lists the names.

    Threshold: any such row is low, above 1 % of the rows medium, above 5 % high. A place is two
    braces around a name, in the text itself: code blocks, inline code, formulas and rows that
    speak of templates or hold markup do not count.

    Not assessed: never.
    """
    marked = np.flatnonzero(examples.styles & Style.PLACEHOLDER)
    names: Counter[str] = Counter()
    places = []
    for place, row in read(examples, marked):
        found = _unfilled(row)
        if found:
            places.append(place)
            names.update(found)
    share = len(places) / max(len(examples), 1)
    severity = grade(share, STEPS)
    if severity is None:
        return
    listed = ", ".join(f"{{{{{name}}}}}" for name, _ in names.most_common(5))
    yield Finding(
        id="data.unfilled_template_placeholder",
        severity=severity,
        title=f"{plural(len(places), 'row')} ({share:.1%}) "
        f"{'holds' if len(places) == 1 else 'hold'} places that were never filled in: {listed}",
        detail="The model learns to write the braces as they stand.",
        fix=f"Replace {listed} by what they stand for before training.",
        evidence={"rows": len(places), "share": share, "names": dict(names.most_common(20))},
        example_ids=pick_ids(examples.ids, places),
    )


def _unfilled(row: Example) -> set[str]:
    texts = [row.text] if row.text is not None else [turn.content for turn in row.turns]
    plain = [_CODE.sub(" ", text) for text in texts]
    if any(_TEMPLATING.search(text) for text in plain):
        return set()
    return {found.group(1) for text in plain for found in _PLACE.finditer(text)}
