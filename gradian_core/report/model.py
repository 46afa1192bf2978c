"""The report: one versioned model that every sink writes and every tool reads.

Its body depends on the inputs alone. The clock, the machine and absolute paths belong into
``run.json`` (:mod:`gradian_core.report.run_record`), so that two runs of the same diagnosis
give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import Field, PrivateAttr

from gradian_core.findings import Finding, Severity
from gradian_core.report.attribution import (
    ClusteringReport,
    ClusterReport,
    EngineReport,
    QueryReport,
    SkippedRow,
    TopExamples,
)
from gradian_core.report.base import JsonObject, Part, Text
from gradian_core.report.capability import CapabilityReport
from gradian_core.report.consensus import ConsensusReport
from gradian_core.report.rows import RowsReport
from gradian_core.report.scores import ScoreTable
from gradian_core.report.training_log import TrainingLogReport
from gradian_core.report.verdict_report import VerdictReport

__all__ = ["SCHEMA_VERSION", "FindingReport", "NotDone", "Provenance", "Report", "ScoresFile"]

SCHEMA_VERSION: Final = "1.0"
"""Version of report.json: the major part changes when a field changes its meaning or goes."""


class FindingReport(Part):
    """One thing worth telling: evidence plus advice."""

    id: Text
    """Family and name, such as ``data.duplicates``."""
    severity: Severity
    """How much it matters."""
    title: Text
    """One line that can stand alone."""
    detail: Text = ""
    """What it means for this run."""
    fix: Text = ""
    """What to do; empty where nothing has to be done."""
    evidence: JsonObject = Field(default_factory=dict)
    """The values that made it fire; nan and infinities are strings."""
    example_ids: tuple[Text, ...] = ()
    """Training examples concerned, worst first."""
    because_of: Text | None = None
    """Id of the finding that this one is a consequence of."""

    @classmethod
    def of(cls, finding: Finding) -> FindingReport:
        """Take it over from a check or a stage."""
        return cls(
            id=finding.id,
            severity=finding.severity,
            title=finding.title,
            detail=finding.detail,
            fix=finding.fix,
            evidence=dict(finding.evidence),
            example_ids=finding.example_ids,
            because_of=finding.because_of,
        )


class NotDone(Part):
    """Something that was not assessed."""

    what: Text
    """A check, a stage, a comparison."""
    why: Text
    """What was missing, or why it does not apply."""


class Provenance(Part):
    """Where the numbers come from: equal provenance, equal numbers."""

    index: JsonObject = Field(default_factory=dict)
    """Manifest of the gradient index: id, content hashes, gradient settings, versions."""
    result: JsonObject = Field(default_factory=dict)
    """Settings, content hashes and versions of everything after the index."""
    notes: tuple[Text, ...] = ()
    """Remarks on them, as sentences."""


class ScoresFile(Part):
    """What ``scores.csv`` must be to belong to this report."""

    n_rows: int = Field(ge=0)
    """Its rows, without the head."""
    sha256: Text
    """SHA-256 of its bytes."""


class Report(Part):
    """A diagnosis of a fine-tune."""

    schema_version: Literal["1.0"] = SCHEMA_VERSION
    """Version of this format."""
    headline: Text
    """The diagnosis in one to four sentences, hedges included."""
    verdict: VerdictReport | None = None
    """What broke it; null where no capability was measured or no row was scored."""
    n_examples: int
    """Number of rows of the training data."""
    capability: CapabilityReport | None = None
    """The measured capability; null where none was measured."""
    query: QueryReport | None = None
    """What was scored against; null for a report without attribution."""
    engine: EngineReport | None = None
    """What gave the scores; null for a report without attribution."""
    consensus: ConsensusReport | None = None
    """Whether unlike engines blame the same rows; null where they were not asked."""
    clustering: ClusteringReport | None = None
    """How the examples were grouped; null for a report without attribution."""
    clusters: tuple[ClusterReport, ...] = ()
    """Groups of examples, the lowest sum of scores first."""
    top_examples: TopExamples = TopExamples()
    """The most harmful and the most helpful examples."""
    rows: RowsReport = RowsReport()
    """Rows to be read one by one, shortened: 300 at most."""
    training_log: TrainingLogReport | None = None
    """What the trainer logged, at most 200 values of each quantity; null without a log."""
    findings: tuple[FindingReport, ...] = ()
    """What checks and stages found, worst first."""
    skipped_rows: tuple[SkippedRow, ...] = ()
    """Training rows without a gradient."""
    not_done: tuple[NotDone, ...] = ()
    """What was not assessed, and why."""
    notes: tuple[Text, ...] = ()
    """What was guessed or degraded on the way, as sentences."""
    provenance: Provenance = Provenance()
    """Where the numbers come from."""
    scores_file: ScoresFile | None = None
    """What the ``scores.csv`` beside it must be; null for a report without attribution."""

    _scores: ScoreTable | None = PrivateAttr(default=None)

    @property
    def scores(self) -> ScoreTable | None:
        """The scores of every training row; None for a report without attribution.

        They are kept beside the model and lie in ``scores.csv``, not in ``report.json``.
        """
        return self._scores

    def with_scores(self, scores: ScoreTable) -> Self:
        """Return the same report with its scores attached, and their digest in it."""
        text = scores.to_csv()
        digest = hashlib.sha256(text.encode()).hexdigest()
        copy = self.model_copy(
            update={"scores_file": ScoresFile(n_rows=len(scores), sha256=digest)}
        )
        copy._scores = scores
        return copy

    def worst_severity(self) -> Severity | None:
        """Return the severity of the worst finding, None without findings."""
        return min((f.severity for f in self.findings), key=lambda s: s.rank, default=None)

    def to_json(self) -> str:
        """Return report.json: ASCII, sorted keys, the same text for the same report."""
        body = self.model_dump(mode="json")
        return json.dumps(body, indent=2, sort_keys=True, allow_nan=False) + "\n"

    @classmethod
    def load(cls, path: str | Path) -> Report:
        """Read a report back from its folder or its ``report.json``.

        Scores are read from the ``scores.csv`` beside it, which must be the one that was written
        with it. If that is missing, :attr:`scores` is None and a note says so.

        Raises
        ------
        InputError
            If it is missing, damaged, or was written by a newer version, or if the
            ``scores.csv`` is another one.
        """
        from gradian_core.report.load import load_report

        return load_report(Path(path))
