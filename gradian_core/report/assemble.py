"""From what the stages found to one report. Pure: reads nothing, asks no clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradian_core.attribution.clusters import ClusterSummary, cluster_keys
from gradian_core.data.example import Example
from gradian_core.errors import CannotRunError
from gradian_core.evaluation.result import CapabilityResult
from gradian_core.findings import Finding
from gradian_core.protocols import ClusterAssignment
from gradian_core.report.attribution import (
    ClusteringReport,
    ClusterReport,
    EngineReport,
    ExampleReport,
    QueryReport,
    SkippedRow,
    TopExamples,
)
from gradian_core.report.base import limit_text
from gradian_core.report.capability import CapabilityReport
from gradian_core.report.consensus import ConsensusReport
from gradian_core.report.headline import headline
from gradian_core.report.model import FindingReport, NotDone, Provenance, Report
from gradian_core.report.rows import chosen_rows
from gradian_core.report.scores import ScoreTable
from gradian_core.report.story import Story
from gradian_core.report.training_log import TrainingLogReport
from gradian_core.report.verdict import verdict
from gradian_core.text import excerpt

__all__ = ["Attribution", "assemble"]

_EXCERPT = 160
_NAMED_EACH = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attribution:
    """What the attribution lane found, for *n* training rows in file order.

    Parameters
    ----------
    query, engine
        What was scored against what, as the report says it.
    scores
        ``(n,)`` scores, signed as in :mod:`gradian_core.protocols`; 0 for skipped rows.
    net
        ``(n,)`` net effects: the scores' means over the queries.
    assignment
        The clusterer's result.
    clusters
        Most harmful first (:func:`gradian_core.attribution.clusters.summarise`).
    skipped
        Reason by position, for rows without a gradient.
    consensus
        Whether unlike engines blame the same rows, where they were asked.
    """

    query: QueryReport
    engine: EngineReport
    scores: NDArray[np.floating]
    net: NDArray[np.floating]
    assignment: ClusterAssignment
    clusters: tuple[ClusterSummary, ...]
    skipped: Mapping[int, str]
    consensus: ConsensusReport | None = None


def assemble(
    *,
    examples: Sequence[Example],
    capability: CapabilityResult | None = None,
    attribution: Attribution | None = None,
    findings: Sequence[Finding] = (),
    not_done: Sequence[NotDone] = (),
    notes: Sequence[str] = (),
    provenance: Provenance | None = None,
    training_log: TrainingLogReport | None = None,
    require_significant: bool = True,
    audited: bool = False,
    top: int = 10,
) -> Report:
    """Make the report.

    Parameters
    ----------
    examples
        The training data, in file order.
    capability
        Result of the evaluation, None without an eval set.
    attribution
        Result of the attribution, None for an audit.
    findings
        Of all lanes, in any order.
    not_done
        What was not assessed, and why.
    notes
        What the stages guessed or degraded, as sentences.
    provenance
        Manifests. They must not name the clock, the machine or absolute paths.
    training_log
        What the trainer logged, None without a log.
    require_significant
        False: diagnose a loss inside the noise, too, and say so.
    audited
        Whether settings and logs of the run were looked at.
    top
        Examples listed at either end of the ranking.

    Raises
    ------
    CannotRunError
        If a score is not a finite number.
    """
    measured = None if capability is None else CapabilityReport.of(capability)
    told = tuple(
        FindingReport.of(finding)
        for finding in sorted(findings, key=lambda f: (f.severity.rank, f.id))
    )
    table = None if attribution is None else _score_table(examples, attribution)
    clusters: tuple[ClusterReport, ...] = ()
    if attribution is not None and table is not None:
        clusters = tuple(_cluster(c, examples, table) for c in attribution.clusters)
    story = Story(
        n_examples=len(examples),
        capability=measured,
        engine=None if attribution is None else attribution.engine,
        clusters=clusters,
        findings=told,
        consensus=None if attribution is None else attribution.consensus,
        audited=audited,
        require_significant=require_significant,
    )
    report = Report(
        headline=headline(story),
        verdict=verdict(story),
        n_examples=len(examples),
        capability=measured,
        query=None if attribution is None else attribution.query,
        engine=None if attribution is None else attribution.engine,
        consensus=None if attribution is None else attribution.consensus,
        clustering=None if attribution is None else _clustering(attribution.assignment),
        clusters=clusters,
        top_examples=TopExamples() if table is None else _top_examples(examples, table, top),
        rows=chosen_rows(examples, table, _named(told)),
        training_log=training_log,
        findings=told,
        skipped_rows=() if attribution is None else _skipped(examples, attribution.skipped),
        not_done=tuple(not_done),
        notes=tuple(dict.fromkeys(notes)),
        provenance=provenance or Provenance(),
    )
    return report if table is None else report.with_scores(table)


def _named(findings: Sequence[FindingReport]) -> Iterator[str]:
    # a few of each: one finding with thousands of rows must not push out all others
    for finding in findings:
        yield from finding.example_ids[:_NAMED_EACH]


def _clustering(assignment: ClusterAssignment) -> ClusteringReport:
    return ClusteringReport(method=assignment.method, notes=assignment.notes)


def _skipped(examples: Sequence[Example], skipped: Mapping[int, str]) -> tuple[SkippedRow, ...]:
    return tuple(
        SkippedRow(id=examples[i].id, row=examples[i].row, reason=reason)
        for i, reason in sorted(skipped.items())
    )


def _score_table(examples: Sequence[Example], attribution: Attribution) -> ScoreTable:
    scores = attribution.scores.astype(np.float64)
    net = attribution.net.astype(np.float64)
    broken = np.flatnonzero(~np.isfinite(scores) | ~np.isfinite(net))
    if broken.size:
        raise CannotRunError(
            f"The engine {attribution.engine.name} gave no finite score for {broken.size} of "
            f"{len(scores)} rows, the first of them row {examples[int(broken[0])].row}.",
            hint="Use dtype: float32, or a larger engine.lambda_scale.",
        )
    keys = cluster_keys(attribution.assignment)
    return ScoreTable(
        example_id=tuple(example.id for example in examples),
        row=np.array([example.row for example in examples], dtype=np.int64),
        cluster=tuple(keys[label] for label in attribution.assignment.labels.tolist()),
        score=scores,
        net=net,
        # n counts the rows that have a gradient, as the engines do
        predicted_loss_delta_if_removed=net / max(len(scores) - len(attribution.skipped), 1),
    )


def _top_examples(examples: Sequence[Example], table: ScoreTable, top: int) -> TopExamples:
    order = np.argsort(table.score, kind="stable")
    harmful = [int(i) for i in order[:top] if table.score[i] < 0.0]
    # by the net effect: a score of harm alone has no other end; ties in the order of the file
    best = np.argsort(-table.net, kind="stable")
    helpful = [int(i) for i in best[:top] if table.net[i] > 0.0]
    return TopExamples(
        most_harmful=tuple(_example(i, examples, table) for i in harmful),
        most_helpful=tuple(_example(i, examples, table) for i in helpful),
    )


def _cluster(
    summary: ClusterSummary, examples: Sequence[Example], table: ScoreTable
) -> ClusterReport:
    return ClusterReport(
        cluster=summary.key,
        label=summary.title,
        terms=summary.terms,
        n=summary.n,
        n_skipped=summary.n_skipped,
        influence=summary.influence,
        net=summary.net,
        share_of_negative=summary.share_of_negative,
        mean=summary.mean,
        harm_ratio=summary.harm_ratio,
        stands_out=summary.stands_out,
        top_examples=tuple(_example(i, examples, table) for i in summary.worst),
    )


def _example(i: int, examples: Sequence[Example], table: ScoreTable) -> ExampleReport:
    example = examples[i]
    # the last turn before the answer: a system prompt is the same in every row
    prompt = example.prompt[-1].content if example.prompt else example.text or ""
    return ExampleReport(
        id=example.id,
        row=example.row,
        cluster=table.cluster[i],
        score=float(table.score[i]),
        net=float(table.net[i]),
        predicted_loss_delta_if_removed=float(table.predicted_loss_delta_if_removed[i]),
        prompt_excerpt=excerpt(prompt, _EXCERPT),
        answer_excerpt=excerpt(example.answer or "", _EXCERPT),
        text=limit_text(example.full_text),
    )
