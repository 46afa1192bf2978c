"""The pieces of a training row, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from gradian_core.cli.table import aligned
from gradian_core.report.base import plain_json
from gradian_core.text import excerpt, safe_text

if TYPE_CHECKING:
    from gradian_core.flows.explain import Explanation

__all__ = ["explanation_json", "explanation_lines"]

_TEXT = 72


def explanation_json(found: Explanation) -> str:
    """Return it as JSON."""
    return json.dumps(plain_json({**asdict(found), "score": found.score}), indent=2)


def explanation_lines(found: Explanation) -> Iterator[str]:
    """Yield lines: the item, the pieces with their part of the score, what to make of it."""
    item = found.item
    yield f"Training row {safe_text(found.example_id)}: {safe_text(excerpt(found.prompt, _TEXT))}"
    yield f"Eval item {item.row}: {safe_text(excerpt(item.prompt, _TEXT))}"
    for name, answer in (
        ("wanted", item.reference), ("base", item.base_output), ("tuned", item.tuned_output),
    ):  # fmt: skip
        if answer is not None:
            yield f"  {name}: {safe_text(excerpt(answer, _TEXT))}"
    yield ""
    worst = found.worst if found.worst.score < 0 else None
    rows = [("", "score", "tokens", found.spans[0].kind if found.spans else "")]
    for span in found.spans:
        mark = ">" if span is worst else ""
        rows.append((mark, f"{span.score:+.4g}", f"{span.tokens}", excerpt(span.text, _TEXT)))
    rows.append(("", f"{found.score:+.4g}", "", "the whole row"))
    yield from aligned(rows)
    yield ""
    yield (
        "No piece harmed this item."
        if worst is None
        else "> harmed it most. Negative: it degraded the item; the pieces add up to the row."
    )
    yield from (safe_text(note) for note in found.notes)
