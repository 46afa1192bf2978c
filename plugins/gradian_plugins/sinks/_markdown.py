"""A report as markdown: the verdict first, its provenance last."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from gradian_core.report.attribution import ExampleReport
from gradian_core.report.capability import CapabilityReport
from gradian_core.report.format import count, gate_lines, interval, level, number, percent, signed
from gradian_core.report.model import FindingReport, Report
from gradian_core.report.uptake import UptakeReport
from gradian_core.text import excerpt, md_cell, md_code
from gradian_plugins.sinks._consensus import comparison_lines, consensus_lines

__all__ = ["markdown"]

_ITEMS = 20
_CLUSTERS = 20
_IDS = 5
_CELL = 120
_TITLE = 200
_PROSE = 1000
_HEADLINE = 4000

_PICTURE = {"ranks", "other_ranks", "n_ranked"}
"""What of an agreement serves only to draw it."""

# what would open a list or a heading at the start of a line
_BLOCK_START = re.compile(r"^(\d{0,9})([#+=.)-])")


def markdown(report: Report) -> str:
    """Return report.md: the same text for the same report."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    name = "audit" if report.capability is None else report.capability.name
    yield f"# Gradian report: {_inline(name, _TITLE)}"
    yield from _paragraph(_prose(report.headline, _HEADLINE))
    if report.capability is not None:
        yield from _capability(report.capability)
    if report.query is not None and report.query.uptake is not None:
        yield from _uptake(report.query.uptake)
    if report.engine is not None and report.engine.compared:
        yield from comparison_lines(report.engine)
    if report.consensus is not None:
        yield from consensus_lines(report.consensus)
    yield from _clusters(report)
    top = report.top_examples
    yield from _examples("Most harmful examples", top.most_harmful)
    yield from _examples("Most helpful examples", top.most_helpful)
    yield from _findings(report.findings)
    yield from _not_done(report)
    yield from _notes(report)
    yield from _provenance(report)


def _capability(capability: CapabilityReport) -> Iterator[str]:
    yield from _heading("Capability")
    yield from _table(
        (
            "metric",
            "base",
            "tuned",
            "delta",
            f"{level(capability.ci_level)} CI",
            "items",
            "got worse",
            "verdict",
        ),
        [
            (
                md_code(capability.metric),
                f"{capability.base:.4f}",
                f"{capability.tuned:.4f}",
                f"**{capability.delta:+.4f}**",
                interval(capability),
                f"{capability.n_items:,}",
                f"{capability.n_flipped:,}",
                f"**{md_cell(capability.verdict)}**",
            )
        ],
    )
    lines = gate_lines(capability)
    if lines:
        yield from _paragraph(_prose(" ".join(lines), _PROSE))
    if capability.n_base_failures:
        yield from _paragraph(
            f"The base model fails {capability.n_base_failures:,} of the items too; "
            "no training row explains those."
        )
    if capability.margins is not None:
        m = capability.margins
        yield from _paragraph(
            f"Base preference margin of the items that got worse: {m.mean:+.2f} nats on average, "
            f"below {m.weak_below:g} nat for {m.n_weak:,} of {m.n:,}."
        )
    worse = [item for item in capability.items if item.regressed]
    if not worse:
        return
    yield from _heading("Items that got worse", 3)
    yield from _table(
        ("row", "prompt", "wanted", "base", "tuned", "margin (nats)"),
        [
            (
                str(item.row),
                _code(item.prompt),
                _code(item.reference),
                number(item.base_score) if item.base_output is None else _code(item.base_output),
                number(item.tuned_score) if item.tuned_output is None else _code(item.tuned_output),
                signed(item.margin),
            )
            for item in worse[:_ITEMS]
        ],
    )
    yield from _rest(len(worse) - _ITEMS, "item")


def _uptake(uptake: UptakeReport) -> Iterator[str]:
    yield from _heading("What is said instead", 3)
    yield from _paragraph(uptake.sentence)
    taught = [phrase for phrase in uptake.phrases if phrase.n_rows]
    if not taught:
        return
    yield from _table(
        ("said instead", "items", "rows that teach it", "such as"),
        [
            (
                _code(phrase.text),
                f"{phrase.n_items:,}",
                f"{phrase.n_rows:,}",
                ", ".join(md_code(name) for name in phrase.example_ids[:_IDS]),
            )
            for phrase in taught[:_ITEMS]
        ],
    )


def _clusters(report: Report) -> Iterator[str]:
    if not report.clusters:
        return
    shown = report.clusters[:_CLUSTERS]
    yield from _heading("Clusters")
    yield from _paragraph(
        "Negative influence is harm: these examples pushed the model away from the capability. "
        "Most harmful cluster first."
    )
    if report.query is not None and report.query.aggregation != "mean":
        yield from _paragraph(
            f"Scores are by aggregation {report.query.aggregation}: the harm to single items. "
            "Predicted changes are of the mean over all items, from the net effect, and may have "
            "the other sign."
        )
    yield from _table(
        (
            "cluster",
            "label",
            "n",
            "signed influence",
            "share of negative",
            "mean per example",
            "harm per example, against the others",
        ),
        [
            (
                md_code(excerpt(cluster.cluster, _CELL)),
                _inline(cluster.label, _CELL),
                f"{cluster.n:,}",
                signed(cluster.influence),
                percent(cluster.share_of_negative),
                signed(cluster.mean),
                "n/a" if cluster.harm_ratio is None else f"{number(cluster.harm_ratio)}×",
            )
            for cluster in shown
        ],
    )
    yield from _rest(len(report.clusters) - _CLUSTERS, "cluster")
    for cluster in shown:
        if cluster.top_examples:
            title = f"Most harmful in cluster {_inline(cluster.cluster, _CELL)}"
            yield from _examples(title, cluster.top_examples, 3)


def _examples(title: str, examples: Sequence[ExampleReport], depth: int = 2) -> Iterator[str]:
    if not examples:
        return
    yield from _heading(title, depth)
    yield from _table(
        ("example", "cluster", "score", "predicted Δloss if removed", "prompt", "answer"),
        [
            (
                md_code(example.id),
                "" if example.cluster is None else md_code(excerpt(example.cluster, _CELL)),
                signed(example.score),
                signed(example.predicted_loss_delta_if_removed),
                _code(example.prompt_excerpt),
                _code(example.answer_excerpt),
            )
            for example in examples
        ],
    )


def _findings(findings: Sequence[FindingReport]) -> Iterator[str]:
    yield from _heading("Findings")
    if not findings:
        yield from _paragraph("None.")
    for finding in findings:
        yield from _heading(f"{finding.severity}: {_inline(finding.title, _TITLE)}", 3)
        yield from _paragraph(_prose(finding.id))
        if finding.detail:
            yield from _paragraph(_prose(finding.detail))
        if finding.fix:
            yield from _paragraph(f"**Fix:** {_inline(finding.fix)}")
        if finding.because_of is not None:
            yield from _paragraph(f"Consequence of {_inline(finding.because_of, _TITLE)}.")
        if finding.evidence:
            evidence = json.dumps(finding.evidence, ensure_ascii=False, sort_keys=True)
            yield from _paragraph(f"Evidence: {_inline(evidence)}")
        if finding.example_ids:
            shown = ", ".join(_inline(name, _CELL) for name in finding.example_ids[:_IDS])
            more = len(finding.example_ids) - _IDS
            yield from _paragraph(
                f"Examples: {shown}" + (f" and {more:,} more in report.json." if more > 0 else ".")
            )


def _not_done(report: Report) -> Iterator[str]:
    yield from _heading("Not done")
    if not report.not_done and not report.skipped_rows:
        yield from _paragraph("Nothing was left out.")
        return
    lines = [f"- {_prose(entry.what)}: {_inline(entry.why)}" for entry in report.not_done]
    lines += [
        f"- training row {row.row} ({md_code(row.id)}): {_inline(row.reason)}"
        for row in report.skipped_rows[:_ITEMS]
    ]
    yield from _paragraph(*lines)
    yield from _rest(len(report.skipped_rows) - _ITEMS, "skipped row")


def _notes(report: Report) -> Iterator[str]:
    clustering = () if report.clustering is None else report.clustering.notes
    notes = (*report.notes, *clustering, *report.provenance.notes)
    if notes:
        yield from _heading("Notes")
        yield from _paragraph(*(f"- {_prose(note)}" for note in notes))


def _provenance(report: Report) -> Iterator[str]:
    yield from _heading("Provenance")
    yield from _paragraph("Equal values here give equal numbers above.")
    facts: dict[str, JsonValue] = {"report": {"schema_version": report.schema_version}}
    if report.query is not None:
        # what is said instead has a table of its own
        facts["query"] = report.query.model_dump(mode="json", exclude={"uptake": {"phrases"}})
    if report.engine is not None:
        facts["engine"] = report.engine.model_dump(
            mode="json", exclude={"agreement": _PICTURE, "compared": {"__all__": _PICTURE}}
        )
    if report.clustering is not None:
        facts["clustering"] = {"method": report.clustering.method}
    facts["index"] = report.provenance.index
    facts["result"] = report.provenance.result
    yield from _table(
        ("what", "value"),
        [(_inline(key, _CELL), _code(value)) for key, value in _flat(facts)],
    )


def _flat(facts: Mapping[str, JsonValue], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in facts.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{prefix}{key}", shown


def _prose(text: str, width: int = _PROSE) -> str:
    """Text that renders as text, at the start of a line too."""
    return _BLOCK_START.sub(r"\1\\\2", _inline(text, width))


def _inline(text: str, width: int = _PROSE) -> str:
    return md_cell(excerpt(text, width))


def _code(text: str) -> str:
    return md_code(excerpt(text, _CELL))


def _heading(text: str, depth: int = 2) -> tuple[str, str]:
    return "", f"{'#' * depth} {text}"


def _paragraph(*lines: str) -> tuple[str, ...]:
    return "", *lines


def _rest(n: int, what: str) -> Iterator[str]:
    if n > 0:
        yield from _paragraph(f"{count(n, f'more {what}')} in report.json.")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield _row(head)
    yield _row(["---"] * len(head))
    for row in rows:
        yield _row(row)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
