"""Which rows a report holds to be read one by one, and what it keeps of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from gradian_core.data.example import Example
from gradian_core.report.base import Number, Part, Text
from gradian_core.report.scores import ScoreTable
from gradian_core.text import excerpt

__all__ = ["RowReport", "RowsReport", "chosen_rows"]

_WHOLE = 300
"""Up to so many rows, a report holds all of them."""
_HARMFUL, _HELPFUL, _NAMED = 120, 60, 40
_SEED = 0
_EXCERPT = 160


class RowReport(Part):
    """One training row, shortened."""

    id: Text
    """Content hash and row number."""
    row: int
    """Row number in the file, from 0."""
    cluster: Text | None = None
    """Cluster it belongs to; null without clusters."""
    score: Number = None
    """Its score; null for a report without attribution."""
    prompt: Text
    """Start of its prompt, as one line."""
    answer: Text
    """Start of its answer, as one line."""


class RowsReport(Part):
    """Rows to be read one by one."""

    listed: tuple[RowReport, ...] = ()
    """The rows: most harmful first, or in the order of the file without scores."""
    complete: bool = False
    """Whether that is every row of the training data."""
    how: Text = ""
    """Which rows these are, as a sentence."""


def chosen_rows(
    examples: Sequence[Example], table: ScoreTable | None, named: Iterable[str]
) -> RowsReport:
    """Choose the rows that are worth reading, and shorten them.

    Parameters
    ----------
    examples
        The training data, in file order.
    table
        Their scores; None without attribution.
    named
        Ids of rows that a finding names, the most important first.
    """
    n = len(examples)
    if table is None:
        places, how = _named(examples, named), "rows that a finding names"
    elif n <= _WHOLE:
        order: NDArray[np.intp] = np.argsort(table.score, kind="stable")
        return RowsReport(
            listed=tuple(_row(i, examples, table) for i in order.tolist()),
            complete=True,
            how=f"All {n:,} rows.",
        )
    else:
        places, how = _ends_and_sample(examples, table, named)
    listed = tuple(_row(i, examples, table) for i in places)
    if not listed:
        return RowsReport()
    return RowsReport(
        listed=listed,
        complete=len(listed) == n,
        how=f"{len(listed):,} of {n:,} rows: {how}.",
    )


def _ends_and_sample(
    examples: Sequence[Example], table: ScoreTable, named: Iterable[str]
) -> tuple[list[int], str]:
    order = np.argsort(table.score, kind="stable")
    ends = {*order[:_HARMFUL].tolist(), *order[-_HELPFUL:].tolist()}
    told = set(_named(examples, named)) - ends
    rest = order[~np.isin(order, list(ends | told))]
    drawn = min(_WHOLE - len(ends) - len(told), len(rest))
    sample = np.random.default_rng(_SEED).choice(rest, size=drawn, replace=False)
    taken = ends | told | set(sample.tolist())
    how = (
        f"the {_HARMFUL} most harmful, the {_HELPFUL} most helpful, {len(told)} more that a "
        f"finding names, and {drawn} drawn at random (seed {_SEED}); scores.csv has them all"
    )
    return [i for i in order.tolist() if i in taken], how


def _named(examples: Sequence[Example], named: Iterable[str]) -> list[int]:
    found: dict[int, None] = {}
    for identifier in named:
        row = identifier.rpartition("-")[2]
        # an id may be an eval row's, or a plugin's invention
        if row.isdecimal() and int(row) < len(examples) and examples[int(row)].id == identifier:
            found[int(row)] = None
        if len(found) == _NAMED:
            break
    return sorted(found)


def _row(i: int, examples: Sequence[Example], table: ScoreTable | None) -> RowReport:
    example = examples[i]
    # the last turn before the answer: a system prompt is the same in every row
    prompt = example.prompt[-1].content if example.prompt else example.text or ""
    return RowReport(
        id=example.id,
        row=example.row,
        cluster=None if table is None else table.cluster[i],
        score=None if table is None else float(table.score[i]),
        prompt=excerpt(prompt, _EXCERPT),
        answer=excerpt(example.answer or "", _EXCERPT),
    )
