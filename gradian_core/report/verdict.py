"""The verdict: data, setup, base model, no regression, or undetermined. Derived here only.

========================  ======================================================================
the gate                  says whether there is anything to explain
the base model            had little of the capability: *base model*
unlike engines agree      and the setup was looked at and is sound: *data*
they agree, the setup     is at fault, or was not looked at: *undetermined*. Engines agree on some
                          faults of the setup as well (docs/fidelity.md)
they blame other rows     and the setup is at fault: *setup*; otherwise *undetermined*
they agree in part        *undetermined*; *setup* if it is at fault and no group of rows stands out
they were not asked       *undetermined*: one engine's ranking accuses nobody
========================  ======================================================================

*Proven* is not among them: only retraining proves (``gradian counterfactual``).
"""

from __future__ import annotations

from gradian_core.evaluation.gate import IMPROVED, NOT_SIGNIFICANT, REGRESSED
from gradian_core.report.format import percent
from gradian_core.report.story import Story
from gradian_core.report.verdict_report import Kind, VerdictReport
from gradian_core.text import excerpt

__all__ = ["BASE_WEAK", "verdict"]

BASE_WEAK = "attribution.base_model_weak"
_TITLE = 160


def verdict(story: Story) -> VerdictReport | None:
    """Derive the verdict; None where no capability was measured or no row was scored."""
    capability = story.capability
    if capability is None or story.engine is None:
        return None
    asked_anyway = not story.require_significant and capability.delta < 0.0
    if capability.verdict != REGRESSED and not asked_anyway:
        none = capability.verdict in {IMPROVED, NOT_SIGNIFICANT}
        return VerdictReport(
            kind="no_regression" if none else "undetermined",
            why=capability.reason.rstrip(".") or "there is no regression to explain",
        )
    if story.has(BASE_WEAK):
        return _says("base_model", "the base model had little of this capability to lose")
    return _cause(story)


def _cause(story: Story) -> VerdictReport:
    consensus, setup = story.consensus, story.setup
    fault = f"the setup is at fault ({excerpt(setup[0].title, _TITLE)})" if setup else ""
    if consensus is None:
        return _says(
            "undetermined",
            "unlike engines were not compared, and one engine's ranking accuses nobody",
        )
    common = (
        f"{percent(consensus.overlap)} of their {consensus.top_k:,} most harmful rows in common, "
        f"{percent(consensus.chance)} by chance"
    )
    if consensus.verdict == "concentrated":
        blamed = f"unlike engines blame the same rows ({common})"
        if setup:
            return _says("undetermined", f"{blamed}, and {fault} as well")
        if not story.audited:
            return _says(
                "undetermined",
                f"{blamed}, but settings and logs were not looked at, and some faults of the "
                "setup look like this too",
            )
        return _says("data", blamed)
    if consensus.verdict == "diffuse":
        blamed = f"unlike engines blame different rows ({common})"
        if setup:
            return _says("setup", f"{blamed}, and {fault}")
        return _says("undetermined", f"{blamed}: no common cause in the data shows")
    blamed = f"unlike engines agree in part ({common})"
    if setup and not story.accused:
        return _says("setup", f"{blamed}, no group of rows stands out, and {fault}")
    return _says("undetermined", f"{blamed}, and {fault}" if setup else blamed)


def _says(kind: Kind, why: str) -> VerdictReport:
    return VerdictReport(kind=kind, why=why)
