"""Printing an audit in the form that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gradian_core.cli.streams import put

if TYPE_CHECKING:
    from gradian_core.flows.diagnose import Diagnosis

__all__ = ["Format", "show_audit"]

Format = Literal["text", "json", "github", "sarif"]
_WIDTH = 100


def show_audit(diagnosis: Diagnosis, form: Format) -> None:
    """Print the audit on stdout.

    Parameters
    ----------
    diagnosis
        What was found.
    form
        For people or for which machine.
    """
    report, result, dataset = diagnosis.report, diagnosis.result, diagnosis.dataset
    if form == "json":
        put(report.to_json().rstrip("\n"))
    elif form == "github":
        from gradian_core.audit.formats.github import commands

        for line in commands(report, dataset):
            put(line)
    elif form == "sarif":
        from gradian_core.audit.formats.sarif import sarif

        put(sarif(report, result, dataset, diagnosis.summaries))
    else:
        _show_text(diagnosis)


def _show_text(diagnosis: Diagnosis) -> None:
    from rich.console import Console
    from rich.text import Text

    from gradian_core.audit.formats.text import audit_lines

    console = Console(highlight=False, markup=False, emoji=False)
    width = min(console.width, _WIDTH)
    for line, style in audit_lines(diagnosis.report, diagnosis.result, width=width):
        shown = line.encode(console.encoding, "backslashreplace").decode(console.encoding)
        # Lines are wrapped already; another break would leave one without its border.
        console.print(Text(shown, style=style), soft_wrap=True)
