"""Telling the user how far long work has come: on stderr only, never on stdout.

Core flows take a :class:`Progress` and know nothing of terminals. A terminal shows bars;
a pipe or a CI log gets plain lines, at most one in :data:`INTERVAL` seconds for each task,
beside its start and end. A progress display never stops the work that it reports on: a closed
stderr is ignored.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TextIO

from gradian_core.text import safe_text

if TYPE_CHECKING:
    from rich.progress import Progress as RichBars
    from rich.progress import TaskID

__all__ = [
    "INTERVAL",
    "BarProgress",
    "LineProgress",
    "NoProgress",
    "Progress",
    "Task",
    "make_progress",
]

INTERVAL = 30.0
"""Seconds between two lines of one task where there is no terminal."""


class Task(Protocol):
    """A piece of work under way."""

    def advance(self, n: int = 1) -> None:
        """Say that ``n`` more units are done."""


class Progress(Protocol):
    """Where a flow reports what it is doing."""

    def task(self, description: str, total: int | None = None) -> AbstractContextManager[Task]:
        """Start a task of ``total`` units (None: unknown); it ends with the context."""

    def message(self, text: str) -> None:
        """Tell the user one thing, such as that an earlier run is being resumed."""


class NoProgress:
    """Says nothing; also its own task."""

    def task(
        self,
        description: str,  # noqa: ARG002 - the protocol's signature
        total: int | None = None,  # noqa: ARG002
    ) -> AbstractContextManager[NoProgress]:
        """Return a task that reports nowhere."""
        return contextlib.nullcontext(self)

    def advance(self, n: int = 1) -> None:
        """Ignore it."""

    def message(self, text: str) -> None:
        """Ignore it."""


class LineProgress:
    """Plain lines, for pipes and logs.

    Parameters
    ----------
    stream
        Where to write.
    clock
        Returns seconds; only differences count.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock

    def message(self, text: str) -> None:
        """Write one line."""
        with contextlib.suppress(OSError, ValueError):
            print(safe_text(text), file=self._stream, flush=True)

    @contextlib.contextmanager
    def task(self, description: str, total: int | None = None) -> Iterator[Task]:
        """Write a line at the start, now and then, and at the end."""
        task = _LineTask(self.message, description, total, self._clock)
        yield task
        task.finish()


class _LineTask:
    def __init__(
        self,
        write: Callable[[str], None],
        description: str,
        total: int | None,
        clock: Callable[[], float],
    ) -> None:
        self._write = write
        self._description = description
        self._total = total
        self._clock = clock
        self._done = 0
        self._started = self._last = clock()
        write(f"{description}: started" + ("" if total is None else f", {total:,} to do"))

    def advance(self, n: int = 1) -> None:
        self._done += n
        now = self._clock()
        if now - self._last < INTERVAL:
            return
        self._last = now
        elapsed = now - self._started
        parts = [f"{self._description}: {self._done:,}"]
        if self._total:
            parts.append(f" of {self._total:,} ({self._done / self._total:.0%})")
        parts.append(f", {_duration(elapsed)}")
        if self._total and self._done:
            left = elapsed / self._done * max(self._total - self._done, 0)
            parts.append(f", about {_duration(left)} left")
        self._write("".join(parts))

    def finish(self) -> None:
        elapsed = self._clock() - self._started
        self._write(f"{self._description}: done in {_duration(elapsed)}")


class BarProgress:
    """Bars of rich, for terminals."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        class Unstoppable(Console):
            """rich's own answer to a closed stderr is to close stdout and exit."""

            def on_broken_pipe(self) -> None:
                self.quiet = True

        self._console = Unstoppable(file=stream)
        self._bars: RichBars | None = None

    def message(self, text: str) -> None:
        """Write one line above the bars."""
        from rich.text import Text

        with contextlib.suppress(OSError, ValueError):
            self._console.print(Text(safe_text(text)))

    @contextlib.contextmanager
    def task(self, description: str, total: int | None = None) -> Iterator[Task]:
        """Show a bar; tasks may be nested."""
        outermost = self._bars is None
        if self._bars is None:
            self._bars = self._new_bars()
            with contextlib.suppress(OSError, ValueError):
                self._bars.start()
        bars = self._bars
        try:
            yield _BarTask(bars, bars.add_task(safe_text(description), total=total))
        finally:
            if outermost:
                self._bars = None
                with contextlib.suppress(OSError, ValueError):
                    bars.stop()

    def _new_bars(self) -> RichBars:
        from rich import progress

        return progress.Progress(
            # Without markup: brackets in a description are text.
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            console=self._console,
        )


class _BarTask:
    def __init__(self, bars: RichBars, task: TaskID) -> None:
        self._bars = bars
        self._task = task

    def advance(self, n: int = 1) -> None:
        self._bars.advance(self._task, n)


def make_progress(*, quiet: bool = False, stream: TextIO | None = None) -> Progress:
    """Return bars for a terminal, lines for anything else, or silence.

    Parameters
    ----------
    quiet
        Say nothing.
    stream
        Where to write; stderr if None.
    """
    stream = sys.stderr if stream is None else stream
    # Programs without a console, such as pythonw, have no stderr at all.
    if quiet or stream is None:
        return NoProgress()
    return BarProgress(stream) if stream.isatty() else LineProgress(stream)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
