"""The parts of a report that its verdict and its headline are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradian_core.findings import Severity
from gradian_core.report.attribution import ClusterReport, EngineReport
from gradian_core.report.capability import CapabilityReport
from gradian_core.report.consensus import ConsensusReport
from gradian_core.report.model import FindingReport

__all__ = ["Story"]

_SETUP = ("config.", "dynamics.")
_GRAVE = (Severity.CRITICAL, Severity.HIGH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What was found; findings worst first.

    Parameters
    ----------
    n_examples
        Training rows.
    capability, engine, clusters, consensus
        As in the report.
    findings
        Of all lanes.
    audited
        Whether settings and logs of the run were looked at.
    require_significant
        The setting of this name.
    """

    n_examples: int
    capability: CapabilityReport | None
    engine: EngineReport | None
    clusters: Sequence[ClusterReport]
    findings: Sequence[FindingReport]
    consensus: ConsensusReport | None = None
    audited: bool = False
    require_significant: bool = True

    @property
    def accused(self) -> list[ClusterReport]:
        """The clusters that stand out, the most harmful first."""
        return [cluster for cluster in self.clusters if cluster.stands_out]

    @property
    def critical(self) -> list[FindingReport]:
        """Findings that can explain the change on their own."""
        return [f for f in self.findings if f.severity is Severity.CRITICAL]

    @property
    def setup(self) -> list[FindingReport]:
        """Grave findings about settings and the course of training, causes before effects."""
        grave = [f for f in self.findings if f.id.startswith(_SETUP) and f.severity in _GRAVE]
        return sorted(grave, key=lambda f: f.because_of is not None)

    def has(self, name: str) -> bool:
        """Whether there is a finding of this id."""
        return any(f.id == name for f in self.findings)
