"""A report on a terminal.

Text from files goes through :func:`~gradian_core.text.inert` into ``rich.text.Text``, never
through markup. Everything that may hold such text stands behind a border: CI runners act on
lines that start with ``::``, and on ``##[…]`` anywhere in one, and a row of the training data
must not be able to write either.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from gradian_core.findings import Severity
from gradian_core.report.attribution import AgreementReport, ClusterReport, ExampleReport
from gradian_core.report.capability import CapabilityReport
from gradian_core.report.format import count, gate_lines, interval, level, percent, signed
from gradian_core.report.model import FindingReport, Report
from gradian_core.text import excerpt, inert

__all__ = ["print_report"]

_WIDE = 100
"""Below this many columns a table becomes one entry under the other."""
_CELL = 60
_PROSE = 600
_EXAMPLES = 5
_CLUSTERS = 10
_STYLES = {
    Severity.CRITICAL: "bold white on red",
    Severity.HIGH: "bold red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
    Severity.INFO: "dim",
}


def print_report(report: Report, console: Console) -> None:
    """Print the report; ``report.md`` and ``report.json`` say more."""
    screen = _Screen(console)
    screen.box("Diagnosis", screen.text(report.headline, "bold"))
    if report.capability is not None:
        _capability(report.capability, screen)
    if report.clusters:
        screen.table(
            "Clusters, most harmful first",
            ("cluster", "label", "n", "influence", "share of negative", "mean"),
            [_cluster_cells(cluster) for cluster in report.clusters[:_CLUSTERS]],
        )
        hidden = len(report.clusters) - _CLUSTERS
        if hidden > 0:
            console.print(f"{count(hidden, 'more cluster')} in report.json")
    if report.engine is not None and report.engine.compared:
        screen.table(
            f"Other engines beside {report.engine.name}",
            ("engine", "Spearman", "shared most harmful", "by chance"),
            [_engine_cells(other) for other in report.engine.compared],
        )
    top = report.top_examples
    for title, examples in (
        ("Most harmful examples", top.most_harmful),
        ("Most helpful examples", top.most_helpful),
    ):
        if examples:
            screen.table(
                f"{title}, {len(examples[:_EXAMPLES])} of {len(examples)} listed",
                ("example", "cluster", "score", "if removed", "prompt", "answer"),
                [_example_cells(example) for example in examples[:_EXAMPLES]],
            )
    for finding in report.findings:
        _finding(finding, screen)
    _left_out(report, screen)


class _Screen:
    """A console, and what it can show."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._wide = console.width >= _WIDE

    def text(self, text: str, style: str = "") -> Text:
        """Make text safe to print, in characters that the console's encoding has."""
        encoding = self._console.encoding
        safe = inert(text)
        return Text(safe.encode(encoding, "backslashreplace").decode(encoding), style=style)

    def box(self, title: str, *lines: RenderableType) -> None:
        """Print lines behind a border."""
        grid = Table.grid(expand=True)
        for line in lines:
            grid.add_row(line)
        self._console.print(Panel(grid, title=self.text(title), title_align="left"))

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table, or one entry under the other where it would not fit."""
        if not self._wide:
            entries = []
            for row in rows:
                filled = [(name, cell) for name, cell in zip(head, row, strict=True) if cell]
                entries += [self.text(f"{name}: {cell}") for name, cell in filled]
                entries.append(Text())
            self.box(title, *entries[:-1])
            return
        table = Table(title=self.text(title), title_justify="left", box=box.ROUNDED, expand=True)
        for name in head:
            table.add_column(self.text(name), overflow="fold")
        for row in rows:
            table.add_row(*(self.text(cell) for cell in row))
        self._console.print(table)


def _capability(capability: CapabilityReport, screen: _Screen) -> None:
    screen.table(
        "Capability",
        (
            "metric",
            "base",
            "tuned",
            "delta",
            f"{level(capability.ci_level)} CI",
            "items",
            "verdict",
        ),
        [
            (
                excerpt(capability.metric, _CELL),
                f"{capability.base:.4f}",
                f"{capability.tuned:.4f}",
                f"{capability.delta:+.4f}",
                interval(capability),
                f"{capability.n_items:,} ({capability.n_flipped:,} worse)",
                excerpt(capability.verdict, _CELL),
            )
        ],
    )
    lines = gate_lines(capability)
    if lines:
        screen.box("Why this verdict", screen.text(excerpt(" ".join(lines), _PROSE)))


def _engine_cells(other: AgreementReport) -> tuple[str, ...]:
    return (
        other.engine,
        "n/a" if other.spearman is None else f"{other.spearman:.3f}",
        f"{percent(other.top_k_overlap)} of {other.top_k:,}",
        percent(other.top_k_chance),
    )


def _cluster_cells(cluster: ClusterReport) -> tuple[str, ...]:
    return (
        excerpt(cluster.cluster, _CELL),
        excerpt(cluster.label, _CELL),
        f"{cluster.n:,}",
        signed(cluster.influence),
        percent(cluster.share_of_negative),
        signed(cluster.mean),
    )


def _example_cells(example: ExampleReport) -> tuple[str, ...]:
    return (
        example.id,
        "" if example.cluster is None else excerpt(example.cluster, _CELL),
        signed(example.score),
        signed(example.predicted_loss_delta_if_removed),
        excerpt(example.prompt_excerpt, _CELL),
        excerpt(example.answer_excerpt, _CELL),
    )


def _finding(finding: FindingReport, screen: _Screen) -> None:
    lines = [screen.text(excerpt(finding.title, _PROSE), _STYLES[finding.severity])]
    if finding.detail:
        lines.append(screen.text(excerpt(finding.detail, _PROSE)))
    if finding.fix:
        lines.append(screen.text(excerpt(f"Fix: {finding.fix}", _PROSE), "green"))
    screen.box(excerpt(f"{finding.severity} {finding.id}", _CELL), *lines)


def _left_out(report: Report, screen: _Screen) -> None:
    lines = [
        screen.text(excerpt(f"{entry.what}: {entry.why}", _PROSE)) for entry in report.not_done
    ]
    if report.skipped_rows:
        lines.append(screen.text(f"{count(len(report.skipped_rows), 'training row')} skipped"))
    notes = (*report.notes, *(report.clustering.notes if report.clustering else ()))
    lines += [screen.text(excerpt(note, _PROSE)) for note in notes]
    if lines:
        screen.box("Not done, and notes", *lines)
