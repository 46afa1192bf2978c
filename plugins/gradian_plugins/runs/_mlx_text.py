"""What mlx-lm prints while it trains, which is the only log that it keeps.

Up to 2025 a line an entry (``Iter 10: Train loss 2.1, Learning Rate 1.000e-05, …``; the rate came
later), since then a table (``10   2.100 ▼   …`` and ``10   val 2.300   …``).
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["is_mlx_text", "mlx_log"]

_NUMBER = r"([-+]?(?:\d[\d.]*(?:e[-+]?\d+)?|nan|inf))"
_LINE = re.compile(rf"Iter (\d{{1,12}}): (Train|Val) loss {_NUMBER}(?:, Learning Rate {_NUMBER})?")
_HEADER = re.compile(r"\biter\s+train_loss\b")
_ROW = re.compile(rf"^[\s│|]*(\d{{1,12}})[\s│|]+(?:(val)[\s│|]+{_NUMBER}|{_NUMBER}[\s│|]*[▼▲])")
_ESCAPE = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")


def is_mlx_text(text: str) -> bool:
    """Return whether the text holds what mlx-lm prints."""
    return _LINE.search(text) is not None or _HEADER.search(text) is not None


def mlx_log(text: str) -> tuple[list[dict[str, Any]], int]:
    """Return the entries of the last run, and how many runs there are.

    A run begins where the iterations start again.
    """
    records: list[dict[str, Any]] = []
    runs = 1
    for line in re.split(r"[\r\n]+", text):
        record = _entry(_ESCAPE.sub("", line) if "\x1b" in line else line)
        if record is None:
            continue
        if records and record["step"] < records[-1]["step"]:
            records.clear()
            runs += 1
        records.append(record)
    return records, runs


def _entry(line: str) -> dict[str, Any] | None:
    if match := _LINE.search(line):
        key = "loss" if match[2] == "Train" else "eval_loss"
        record: dict[str, Any] = {"step": int(match[1]), key: _float(match[3])}
        if match[4]:
            record["learning_rate"] = _float(match[4])
        return record
    if match := _ROW.match(line):
        key = "eval_loss" if match[2] else "loss"
        return {"step": int(match[1]), key: _float(match[3] or match[4])}
    return None


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
