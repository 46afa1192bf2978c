"""An audit as GitHub workflow commands, which show as annotations.

GitHub shows ten annotations of a kind for a step and drops the others without a word: the worst
ten findings are printed here, after a notice that says how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.audit.fold import groups
from gradian_core.audit.formats.places import places
from gradian_core.data.files import Dataset
from gradian_core.findings import Severity
from gradian_core.report.format import count
from gradian_core.report.model import FindingReport, Report
from gradian_core.text import excerpt, inert

__all__ = ["commands"]

MOST = 10
_LEVELS = {
    Severity.CRITICAL: "error",
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "notice",
    Severity.INFO: "notice",
}
_TEXT, _TITLE = 1000, 200


def commands(report: Report, dataset: Dataset | None) -> Iterator[str]:
    """Yield workflow commands, the worst finding first.

    Parameters
    ----------
    report
        The audit's report.
    dataset
        The training data, for files and lines.
    """
    findings = [f for group in groups(report.findings) for f in (group.lead, *group.others)]
    findings.sort(key=lambda finding: finding.severity.rank)
    hidden = len(findings) - MOST
    text = inert(excerpt(report.headline, _TEXT))
    if hidden > 0:
        text += f" {count(hidden, 'more finding')} in the log or the report."
    yield f"::notice title=gradian diagnose::{_message(text)}"
    for finding in findings[:MOST]:
        yield _command(finding, dataset)


def _command(finding: FindingReport, dataset: Dataset | None) -> str:
    title = excerpt(f"{finding.severity} {finding.id}", _TITLE)
    properties = {"title": title}
    place = next(places(finding, dataset, 1), None)
    if place is not None:
        properties["file"] = place.path.as_posix()
        if place.line is not None:
            properties["line"] = str(place.line)
    parts = [finding.title, finding.detail, f"Fix: {finding.fix}" if finding.fix else ""]
    # Each part on a line of its own; the escape for it is GitHub's, the text's own are gone.
    text = "\n".join(inert(excerpt(part, _TEXT)) for part in parts if part)
    listed = ",".join(f"{key}={_property(inert(value))}" for key, value in properties.items())
    return f"::{_LEVELS[finding.severity]} {listed}::{_message(text)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
