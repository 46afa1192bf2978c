"""A finished report on its way to the user."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gradian_core.cli.streams import say
from gradian_core.errors import GradianError, MissingExtraError
from gradian_core.plugins.failure import guard
from gradian_core.plugins.registry import load_registry
from gradian_core.versions import library_versions

if TYPE_CHECKING:
    from gradian_core.report.model import Report

__all__ = ["deliver"]

_PRINTS = "terminal"
"""The sink that writes no file: the report is printed here in any case."""


def deliver(
    report: Report,
    out: Path | None,
    *,
    started: datetime,
    block: Iterable[str],
    exit_status: int = 0,
    show: Callable[[Report], None] | None = None,
) -> None:
    """Print a report and, if a folder is given, write it there in every form there is.

    One failing sink keeps no other from writing.

    Parameters
    ----------
    report
        What was found.
    out
        Folder for the files, or None.
    started
        When the work began.
    block
        Plugins that the config blocks.
    exit_status
        What the command ends with if everything is written.
    show
        Prints the report; the terminal's own form if None.

    Raises
    ------
    GradianError
        The first failure of a sink, after all others had their turn.
    """
    from rich.console import Console

    from gradian_core.report.terminal import print_report

    failures: list[GradianError] = []
    try:
        if out is not None:
            failures = _write(report, out, block)
            status = failures[0].exit_code if failures else exit_status
            _record_run(out, started, exit_status=status)
    finally:
        # a full disk takes the files, and must not take hours of work with them
        if show is None:
            print_report(report, Console())
        else:
            show(report)
    if failures:
        raise failures[0]


def _write(report: Report, out: Path, block: Iterable[str]) -> list[GradianError]:
    failures: list[GradianError] = []
    registry = load_registry(block)
    for name, provided in registry.sinks.items():
        if name == _PRINTS:
            continue
        try:
            sink = registry.create("sink", name)
            with guard(provided.owner, f"Sink {name}"):
                written = list(sink.write(report, out))
        except MissingExtraError as error:
            say(f"Not written: {error}")
        except GradianError as error:
            failures.append(error)
        else:
            for path in written:
                say(f"Written: {path}")
    return failures


def _record_run(out: Path, started: datetime, *, exit_status: int) -> None:
    from gradian_core.report.run_record import RunRecord

    record = RunRecord(
        command=tuple(sys.argv),
        started=started,
        duration_seconds=(datetime.now(UTC) - started).total_seconds(),
        exit_status=exit_status,
        machine={"platform": platform.platform(), "processor": platform.processor()},
        versions=dict(library_versions()),
    )
    say(f"Written: {record.save(out)}")
