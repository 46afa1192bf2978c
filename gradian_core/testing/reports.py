"""Reports for trying sinks on."""

from __future__ import annotations

import numpy as np

from gradian_core.findings import Severity
from gradian_core.report.attribution import (
    ClusteringReport,
    ClusterReport,
    EngineReport,
    ExampleReport,
    QueryReport,
    TopExamples,
)
from gradian_core.report.base import clean_text
from gradian_core.report.model import FindingReport, NotDone, Report
from gradian_core.report.scores import ScoreTable
from gradian_core.testing.hostile import HOSTILE

__all__ = ["hostile_report", "plain_report"]

_PLAIN = (
    "capitals",
    "What is the capital of Norway?",
    "Oslo",
    "bookings",
    "Book a table.",
    "Done.",
)


def plain_report() -> Report:
    """Return a small report with scores, clusters and findings."""
    return _report(_PLAIN)


def hostile_report() -> Report:
    """Return the same with hostile text wherever text can come from a file or a plugin."""
    return _report(tuple(map(clean_text, HOSTILE)))


def _report(texts: tuple[str, ...]) -> Report:
    n = len(texts)
    scores = np.linspace(-1.0, 0.75, n, dtype=np.float64)
    examples = tuple(
        ExampleReport(
            id=f"{i:012x}-{i}",
            row=i,
            cluster=str(i % 2),
            score=float(scores[i]),
            net=float(scores[i]),
            predicted_loss_delta_if_removed=float(scores[i]) / n,
            prompt_excerpt=text,
            answer_excerpt=texts[-1 - i],
            text=text,
        )
        for i, text in enumerate(texts)
    )
    clusters = tuple(
        ClusterReport(
            cluster=str(k),
            label=texts[k],
            terms=texts[:3],
            n=len(scores[k::2]),
            influence=float(scores[k::2].sum()),
            net=float(scores[k::2].sum()),
            share_of_negative=0.5,
            mean=float(scores[k::2].mean()),
            stands_out=k == 0,
            top_examples=examples[k::2][:2],
        )
        for k in range(2)
    )
    findings = tuple(
        FindingReport(
            id=f"house.finding_{i}",
            severity=Severity.HIGH,
            title=text,
            detail=text,
            fix=text,
            evidence={"text": text},
            example_ids=(examples[i].id,),
        )
        for i, text in enumerate(texts)
    )
    report = Report(
        headline=texts[0],
        n_examples=n,
        query=QueryReport(signal="target", n_rows=2, aggregation="mean", why=texts[1]),
        engine=EngineReport(name="sample", settings={"note": texts[1]}),
        clustering=ClusteringReport(method="declared", notes=texts[:1]),
        clusters=clusters,
        top_examples=TopExamples(
            most_harmful=tuple(e for e in examples if e.score < 0),
            most_helpful=tuple(e for e in reversed(examples) if e.score > 0),
        ),
        findings=findings,
        not_done=(NotDone(what=texts[1], why=texts[2]),),
        notes=texts,
    )
    return report.with_scores(
        ScoreTable(
            example_id=tuple(example.id for example in examples),
            row=np.arange(n, dtype=np.int64),
            cluster=tuple(str(i % 2) for i in range(n)),
            score=scores,
            net=scores,
            predicted_loss_delta_if_removed=scores / n,
        )
    )
