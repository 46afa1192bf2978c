"""An audit as plain text, the same on a terminal, in a pipe and in a log.

Text from files stands behind a border: CI runners act on lines that start with ``::``, indented
or not, and a row of the training data must not be able to write one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from gradian_core.audit.fold import Group, groups
from gradian_core.audit.run import Answer, AuditResult
from gradian_core.findings import Severity
from gradian_core.report.format import count
from gradian_core.report.model import FindingReport, Report
from gradian_core.text import excerpt, inert

__all__ = ["STYLES", "audit_lines"]

STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
    Severity.INFO: "dim",
}
_BORDER = "  | "
_TITLE, _PROSE, _WHY = 400, 1200, 300
_ROWS = 5
_SHOWN_IDS = 8


def audit_lines(report: Report, result: AuditResult, *, width: int) -> Iterator[tuple[str, str]]:
    """Yield the lines of an audit, each with the name of a style.

    Parameters
    ----------
    report
        The audit's report.
    result
        The answers of its checks.
    width
        Columns; at least 40 are used.
    """
    width = max(width, 40)
    for line in _wrapped(report.headline, width):
        yield line, "bold"
    for group in groups(report.findings):
        yield "", ""
        yield from _group(group, width)
    yield from _not_assessed(result, width)
    if report.notes:
        yield "", ""
        yield "Notes", "bold"
    for note in report.notes:
        for line in _wrapped(excerpt(note, _PROSE), width):
            yield line, "dim"


def _group(group: Group[FindingReport], width: int) -> Iterator[tuple[str, str]]:
    lead = group.lead
    yield inert(f"{group.worst.upper()} {excerpt(lead.id, _TITLE)}"), STYLES[group.worst]
    for line in _wrapped(excerpt(lead.title, _TITLE), width):
        yield line, "bold"
    for text in (lead.detail, f"Fix: {lead.fix}" if lead.fix else "", _rows(lead)):
        for line in _wrapped(excerpt(text, _PROSE), width) if text else ():
            yield line, ""
    if group.others:
        own = "" if lead.severity is group.worst else f" ({lead.severity} by itself)"
        for line in _wrapped(f"With it{own}:", width):
            yield line, ""
    for other in group.others:
        text = f"{other.severity} {other.id}: {excerpt(other.title, _TITLE)}"
        for line in _wrapped(text, width, hanging="    "):
            yield line, STYLES[other.severity]


def _rows(finding: FindingReport) -> str:
    if not finding.example_ids:
        return ""
    shown = ", ".join(finding.example_ids[:_ROWS])
    more = len(finding.example_ids) - _ROWS
    return f"Rows: {shown}" + (f" and {more:,} more" if more > 0 else "")


def _not_assessed(result: AuditResult, width: int) -> Iterator[tuple[str, str]]:
    missed = result.of(Answer.NOT_ASSESSED)
    if missed:
        yield "", ""
        yield f"Not assessed: {count(len(missed), 'check')}", "bold"
    together: dict[tuple[str, ...], list[str]] = {}
    for outcome in missed:
        # What one option unlocks stands together, and so does what has one and the same reason.
        together.setdefault(outcome.unlock or (outcome.why, ""), []).append(outcome.check)
    for key, names in sorted(together.items(), key=lambda entry: -len(entry[1])):
        shown = ", ".join(names[:_SHOWN_IDS])
        shown += f" and {len(names) - _SHOWN_IDS} more" if len(names) > _SHOWN_IDS else ""
        if key[-1]:
            text = f"With {' and '.join(key)}, {count(len(names), 'check')}: {shown}"
        else:
            text = f"{excerpt(key[0], _WHY)} ({shown})"
        for line in _wrapped(text, width, hanging="  "):
            yield line, ""
    failed = result.of(Answer.FAILED)
    if failed:
        yield "", ""
        yield f"Failed: {count(len(failed), 'check')}", "bold red"
    for outcome in failed:
        for line in _wrapped(f"{outcome.check}: {excerpt(outcome.why, _PROSE)}", width, "  "):
            yield line, ""


def _wrapped(text: str, width: int, hanging: str = "") -> list[str]:
    lines = textwrap.wrap(
        inert(text),
        width - len(_BORDER),
        subsequent_indent=hanging,
        break_on_hyphens=False,
    )
    return [_BORDER + line for line in lines]
