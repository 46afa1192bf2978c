"""The report for people and pull requests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradian_core.files import write_atomic
from gradian_core.report.model import Report
from gradian_plugins.sinks._markdown import markdown

__all__ = ["MarkdownSink"]


class MarkdownSink:
    """Writes ``report.md``."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        """Write the report; text from files shows as text and never as markup."""
        path = folder / "report.md"
        write_atomic(path, markdown(report))
        return (path,)
