"""An audit as SARIF 2.1.0, which code scanning and editors read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gradian_core.__about__ import __version__
from gradian_core.audit.formats.places import Place, places
from gradian_core.audit.run import Answer, AuditResult
from gradian_core.data.files import Dataset
from gradian_core.findings import Severity
from gradian_core.report.base import plain_json
from gradian_core.report.model import FindingReport, Report
from gradian_core.text import safe_text

__all__ = ["sarif"]

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {
    Severity.CRITICAL: "error",
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "note",
    Severity.INFO: "note",
}
# Code scanning shows this number as critical, high, medium or low.
_SCORES = {
    Severity.CRITICAL: "9.5",
    Severity.HIGH: "8.0",
    Severity.MEDIUM: "5.0",
    Severity.LOW: "3.0",
    Severity.INFO: "0.0",
}
_LOCATIONS = 10


def sarif(
    report: Report, result: AuditResult, dataset: Dataset | None, summaries: Mapping[str, str]
) -> str:
    """Return the SARIF document, the same for the same audit.

    Parameters
    ----------
    report
        The audit's report.
    result
        The answers of its checks; those without one become notifications.
    dataset
        The training data, for files and lines.
    summaries
        What each check looks at, by id.
    """
    rules = [
        {"id": _clean(name), "shortDescription": {"text": _clean(text) or _clean(name)}}
        for name, text in sorted(summaries.items())
    ]
    index = {name: i for i, name in enumerate(sorted(summaries))}
    notices = [
        {
            "level": "error" if outcome.answer is Answer.FAILED else "note",
            "message": {"text": _clean(f"{outcome.check}, {outcome.answer}: {outcome.why}")},
            "associatedRule": {"id": _clean(outcome.check), "index": index[outcome.check]},
        }
        for outcome in result.outcomes
        if outcome.answer in {Answer.FAILED, Answer.NOT_ASSESSED}
    ]
    run = {
        "tool": {
            "driver": {"name": "gradian", "semanticVersion": __version__, "rules": rules},
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notices}],
        "results": [_result(finding, dataset, index) for finding in report.findings],
        "properties": {"headline": _clean(report.headline)},
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, sort_keys=True, allow_nan=False)


def _result(
    finding: FindingReport, dataset: Dataset | None, index: Mapping[str, int]
) -> dict[str, Any]:
    parts = [finding.title, finding.detail, f"Fix: {finding.fix}" if finding.fix else ""]
    located = [_location(place) for place in places(finding, dataset, _LOCATIONS)]
    properties = {
        "severity": str(finding.severity),
        "security-severity": _SCORES[finding.severity],
        "evidence": plain_json(finding.evidence),
        "exampleIds": [_clean(identifier) for identifier in finding.example_ids],
    }
    if finding.because_of is not None:
        properties["becauseOf"] = finding.because_of
    made: dict[str, Any] = {
        "ruleId": _clean(finding.id),
        "level": _LEVELS[finding.severity],
        "message": {"text": "\n".join(_clean(part) for part in parts if part)},
        "properties": properties,
    }
    if finding.id in index:
        made["ruleIndex"] = index[finding.id]
    if located:
        made["locations"] = located
    return made


def _location(place: Place) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.path)}}
    if place.line is not None:
        location["region"] = {"startLine": place.line}
    return {"physicalLocation": location}


def _uri(path: Path) -> str:
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _clean(text: str) -> str:
    return safe_text(text, multiline=True)
