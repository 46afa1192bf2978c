"""The report for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradian_core.files import write_atomic
from gradian_core.report.model import Report

__all__ = ["JsonSink"]


class JsonSink:
    """Writes ``report.json``."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        """Write the whole report but the scores of every row, which the csv sink writes."""
        path = folder / "report.json"
        write_atomic(path, report.to_json())
        return (path,)
