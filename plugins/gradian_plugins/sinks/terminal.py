"""The report on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from gradian_core.report.model import Report
from gradian_core.report.terminal import print_report

__all__ = ["TerminalSink"]


class TerminalSink:
    """Prints the report."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:  # noqa: ARG002
        """Print to standard output; the folder is left alone."""
        print_report(report, Console())
        return ()
