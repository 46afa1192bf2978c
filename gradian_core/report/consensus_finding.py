"""What it means that unlike engines agree, or that they do not."""

from __future__ import annotations

from gradian_core.evaluation.gate import REGRESSED
from gradian_core.evaluation.result import CapabilityResult
from gradian_core.findings import Finding, Severity
from gradian_core.report.consensus import ConsensusReport

__all__ = ["consensus_finding"]


def consensus_finding(
    report: ConsensusReport | None, measured: CapabilityResult | None
) -> Finding | None:
    """Say where the cause is to be looked for; only for a capability that regressed."""
    if report is None or measured is None or measured.verdict != REGRESSED:
        return None
    numbers = (
        f"{len(report.engines)} unlike engines share {report.overlap:.0%} of their {report.top_k} "
        f"most harmful rows on average; unrelated rankings would share {report.chance:.0%}."
    )
    evidence = {
        "overlap": report.overlap,
        "chance": report.chance,
        "top_k": report.top_k,
        "concentrated_from": report.concentrated_from,
        "diffuse_below": report.diffuse_below,
        "rules_version": report.rules_version,
        "n_accused": report.n_accused,
    }
    if report.verdict == "concentrated":
        return Finding(
            id="attribution.consensus_concentrated",
            severity=Severity.MEDIUM,
            title=f"Unlike engines blame the same rows: {report.n_accused} are accused by all",
            detail=f"{numbers} That is how a fault in the data looks. {report.source}",
            fix="Read the rows that all accuse, and retrain without them, beside a control that "
            "drops as many others.",
            evidence=evidence,
            example_ids=tuple(row.id for row in report.accused),
        )
    if report.verdict == "diffuse":
        return Finding(
            id="attribution.consensus_diffuse",
            severity=Severity.MEDIUM,
            title="Unlike engines blame different rows: no cause in the data shows",
            detail=f"{numbers} That is how a fault of the training setup looks. {report.source}",
            fix="Read the config and dynamics findings first (gradian diagnose --run); do not "
            "delete rows on the word of one engine.",
            evidence=evidence,
        )
    return Finding(
        id="attribution.consensus_undetermined",
        severity=Severity.LOW,
        title="Unlike engines agree in part: whether the cause lies in the data is open",
        detail=f"{numbers} {report.source}",
        fix="Retrain without the rows that all accuse, beside a control that drops as many others.",
        evidence=evidence,
        example_ids=tuple(row.id for row in report.accused),
    )
