"""The audit in one to three sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gradian_core.audit.fold import groups
from gradian_core.audit.run import Answer, AuditResult
from gradian_core.findings import Finding, Severity
from gradian_core.report.format import count
from gradian_core.text import excerpt

__all__ = ["audit_headline"]

_WIDTH = 300


def audit_headline(result: AuditResult, n_examples: int) -> str:
    """Return the headline; names in it come from files, so whoever prints it makes it safe.

    Consequences of a fault are not counted beside it, and silence about what was not assessed
    is no verdict.
    """
    causes = [g for g in groups(result.findings) if g.worst is not Severity.INFO]
    open_ends = len(result.of(Answer.NOT_ASSESSED)) + len(result.of(Answer.FAILED))
    assessed = len(result.outcomes) - open_ends
    looked = f" by {count(assessed, 'check')}" if assessed else ""
    looked += f" in {count(n_examples, 'training row')}" if assessed and n_examples else ""
    if causes:
        tally = Counter(group.worst for group in causes)
        listed = ", ".join(f"{tally[s]} {s}" for s in Severity if tally[s])
        sentences = [
            f"{count(len(causes), 'fault')} found{looked} ({listed}).",
            *_worst(causes[0].lead, causes[0].others),
        ]
    else:
        sentences = [f"No fault was found{looked}." if assessed else "Nothing was assessed."]
    if open_ends:
        sentences.append(f"{count(open_ends, 'check')} could not be assessed.")
    return " ".join(sentences)


def _worst(lead: Finding, others: Sequence[Finding]) -> list[str]:
    title = excerpt(lead.title, _WIDTH).rstrip(".")
    follows = f", with {count(len(others), 'consequence')}" if others else ""
    said = [f"First: {title}{follows}."]
    return [*said, f"Fix: {excerpt(lead.fix, _WIDTH)}"] if lead.fix else said
