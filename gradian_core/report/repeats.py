"""Rows that are there more than once, and eval items that were trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gradian_core.data.example import Example
from gradian_core.findings import Finding, Severity

__all__ = ["duplicate_rows", "eval_items_in_training"]

_LISTED = 20
_MANY = 0.1
"""Share of the rows from which copies are more than a detail."""


def duplicate_rows(ids: Sequence[str]) -> Finding | None:
    """Training rows that are exact copies of others: their hashes are the same.

    Parameters
    ----------
    ids
        Example ids in the order of the file.
    """
    counts = Counter(name.partition("-")[0] for name in ids)
    copies = len(ids) - len(counts)
    if not copies:
        return None
    first: dict[str, str] = {}
    for name in ids:
        first.setdefault(name.partition("-")[0], name)
    worst = sorted((c for c in counts.items() if c[1] > 1), key=lambda c: -c[1])
    return Finding(
        id="attribution.duplicate_rows",
        severity=Severity.MEDIUM if copies >= _MANY * len(ids) else Severity.LOW,
        title=f"{copies:,} of {len(ids):,} training rows are exact copies of others",
        detail=f"There are {len(counts):,} distinct rows. Each copy has its own score and its "
        "own part in training: the harm of a text is the sum over its copies.",
        fix="Keep one of each, unless the repetition is meant.",
        evidence={"n_copies": copies, "n_distinct": len(counts), "most_copies": worst[0][1]},
        example_ids=tuple(first[key] for key, _ in worst[:_LISTED]),
    )


def eval_items_in_training(items: Iterable[Example], training: Iterable[Example]) -> Finding | None:
    """Eval items whose prompt is a training row's, with the same answer or with another.

    Case and white space do not count. Only the last answer of a row is looked at.
    """
    answers: dict[str, set[str]] = {}
    for row in training:
        answers.setdefault(_folded(_prompt(row)), set()).add(_folded(row.answer or ""))
    same: list[int] = []
    other: list[int] = []
    for item in items:
        found = answers.get(_folded(_prompt(item)))
        if found is not None:
            (same if _folded(item.answer or "") in found else other).append(item.row)
    if not same and not other:
        return None
    return Finding(
        id="attribution.eval_items_in_training",
        severity=Severity.MEDIUM if same else Severity.LOW,
        title=f"{len(same) + len(other)} eval items have the prompt of a training row",
        detail=f"{len(same)} have its answer too, {len(other)} another one. What was trained on "
        "measures memory rather than the capability, and hides what was lost; a prompt that was "
        "trained on with another answer only shows that the answer was learned.",
        fix="Measure with items that no training row asks.",
        evidence={
            "n_same_answer": len(same),
            "n_other_answer": len(other),
            "eval_rows": (same + other)[:_LISTED],
        },
    )


def _prompt(example: Example) -> str:
    return "\n".join(turn.content for turn in example.prompt)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
