"""The score of every training row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradian_core.files import write_atomic
from gradian_core.report.model import Report

__all__ = ["CsvSink"]


class CsvSink:
    """Writes ``scores.csv``."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        """Write every row of the data set; nothing for a report without scores."""
        if report.scores is None:
            return ()
        path = folder / "scores.csv"
        write_atomic(path, report.scores.to_csv())
        return (path,)
