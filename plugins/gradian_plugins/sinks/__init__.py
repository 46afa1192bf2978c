"""Built-in report sinks."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import SinkSpec

__all__ = ["gradian_sinks"]

_HERE = "gradian_plugins.sinks"


@hookimpl
def gradian_sinks() -> Iterator[SinkSpec]:
    """Yield the forms in which a report can be written."""
    yield SinkSpec(
        name="csv",
        summary="scores.csv: the score of every training row",
        factory=f"{_HERE}.csv_file:CsvSink",
    )
    yield SinkSpec(
        name="json",
        summary="report.json: the whole report, for programs",
        factory=f"{_HERE}.json_file:JsonSink",
    )
    yield SinkSpec(
        name="md",
        summary="report.md: the report, for people and pull requests",
        factory=f"{_HERE}.md_file:MarkdownSink",
    )
    yield SinkSpec(
        name="terminal",
        summary="the report on standard output; writes no file",
        factory=f"{_HERE}.terminal:TerminalSink",
    )
