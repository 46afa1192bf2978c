"""The consensus of unlike engines, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.report.consensus import ConsensusReport
from gradian_core.report.format import percent
from gradian_core.text import md_cell, md_code

__all__ = ["consensus_lines"]

_ROWS = 20


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
