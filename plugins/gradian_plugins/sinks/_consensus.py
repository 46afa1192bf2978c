"""Several engines side by side, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.report.attribution import EngineReport
from gradian_core.report.consensus import ConsensusReport
from gradian_core.report.format import percent
from gradian_core.text import md_cell, md_code

__all__ = ["comparison_lines", "consensus_lines"]

_ROWS = 20


def comparison_lines(engine: EngineReport) -> Iterator[str]:
    """Yield the table of engines compared with the reported one, line by line."""
    yield from ("", f"## Other engines beside {md_code(engine.name)}", "")
    yield from (
        "| engine | Spearman, all rows | shared most harmful rows | by chance |",
        "| --- | --- | --- | --- |",
    )
    for other in engine.compared:
        spearman = "n/a" if other.spearman is None else f"{other.spearman:.3f}"
        same = "" if other.independent else " (the same computation)"
        yield (
            f"| {md_code(other.engine)}{same} | {spearman} | {percent(other.top_k_overlap)} of "
            f"{other.top_k:,} | {percent(other.top_k_chance)} |"
        )


def consensus_lines(report: ConsensusReport) -> Iterator[str]:
    """Yield the section, line by line."""
    yield from ("", "## Consensus of unlike engines", "")
    yield (
        f"Verdict: {md_code(report.verdict)}. On average two of the engines share "
        f"{percent(report.overlap)} of their {report.top_k:,} most harmful rows (chance: "
        f"{percent(report.chance)}; concentrated from {report.concentrated_from:.2f}, diffuse "
        f"below {report.diffuse_below:.2f})."
    )
    yield from ("", "| | engine | point, query, form |", "| --- | --- | --- |")
    for place, engine in enumerate(report.engines, start=1):
        yield f"| {place} | {md_code(engine.name)} | {md_cell(engine.label)} |"
    yield from ("", "| engines | shared top rows | Spearman |", "| --- | --- | --- |")
    for pair in report.pairs:
        one, other = (place + 1 for place in pair.engines)
        spearman = "n/a" if pair.spearman is None else f"{pair.spearman:.3f}"
        yield f"| {one}, {other} | {percent(pair.top_k_overlap)} | {spearman} |"
    yield ""
    shown = ", ".join(str(row.row) for row in report.accused[:_ROWS])
    more = report.n_accused - min(_ROWS, len(report.accused))
    yield (
        f"Accused by all: {report.n_accused:,} rows"
        + (f" (row {shown}" + (f" and {more:,} more" if more > 0 else "") + ")" if shown else "")
        + "."
    )
