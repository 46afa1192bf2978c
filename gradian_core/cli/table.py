"""Plain aligned columns: the same on a terminal, in a pipe and in a log."""

from __future__ import annotations

from collections.abc import Sequence

from gradian_core.text import safe_text

__all__ = ["aligned"]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one line a row, with all columns but the last padded to their widest cell.

    Cells are made safe to print.
    """
    cells = [[safe_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
