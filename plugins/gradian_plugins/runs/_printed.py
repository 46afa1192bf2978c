"""The log entries that transformers prints, found in a console's output.

Up to 4.x an entry is a printed dict of numbers, ``{'loss': 1.2, 'grad_norm': nan}``; from 5.0 on
its values are text, ``{'loss': '1.2'}``. An entry has no step of its own: the progress bar that
is drawn again after it has.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["has_printed_log", "printed_log"]

_ENTRY = re.compile(r"\{'[a-z_]*(?:loss|grad_norm|train_runtime)'[^{}\n]{0,2000}\}")
_PAIR = re.compile(r"'([A-Za-z0-9_/.-]{1,80})': (?:'([^']{0,40})'|([-+.\w]{1,40}))")
_BAR = re.compile(r"^\s{0,8}\d{1,3}%\|[^|\n]{0,400}\| {0,4}(\d{1,9})/(\d{1,9}) \[")


def has_printed_log(text: str) -> bool:
    """Return whether the text holds an entry."""
    return _ENTRY.search(text) is not None


def printed_log(text: str) -> tuple[list[dict[str, Any]], int | None]:
    """Return the entries, with ``step`` where a progress bar tells it, and the planned steps.

    The first bar without a caption is the training's; those of evaluations have other totals.
    """
    records: list[dict[str, Any]] = []
    total: int | None = None
    done: int | None = None
    waiting: list[dict[str, Any]] = []
    for line in re.split(r"[\r\n]+", text):
        bar = _BAR.match(line)
        if bar:
            position, size = int(bar[1]), int(bar[2])
            total = size if total is None else total
            if size == total:
                done = position
                for record in waiting:
                    record["step"] = position
                waiting.clear()
        for match in _ENTRY.finditer(line):
            record = _entry(match[0])
            if waiting and done is not None:
                # no bar was drawn between two entries: both belong to the one before
                for earlier in waiting:
                    earlier["step"] = done
                waiting.clear()
            waiting.append(record)
            records.append(record)
    for record in waiting:
        if done is not None:
            record["step"] = done
    return records, total


def _entry(text: str) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for key, quoted, bare in _PAIR.findall(text):
        try:
            record[key] = float(quoted or bare)
        except ValueError:
            record[key] = quoted or bare
    return record
