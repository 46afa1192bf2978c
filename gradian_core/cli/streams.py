"""Standard output and standard error that do not break."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from typing import TextIO

from gradian_core.errors import CannotRunError
from gradian_core.files import reason
from gradian_core.text import safe_text

__all__ = ["finish", "flush", "is_terminal", "prepare", "put", "say"]

_NARROWEST, _WIDEST = 40, 400
"""Columns between which help and tables can be read."""


def put(text: str) -> None:
    """Write a command's result to stdout."""
    with _stdout():
        print(text)  # noqa: T201 - the one place


def say(line: str) -> None:
    """Write one line about the work, made safe to print, to stderr, if anybody listens."""
    with contextlib.suppress(OSError, ValueError):
        print(safe_text(line), file=sys.stderr, flush=True)  # noqa: T201 - the one place


def flush() -> None:
    """Write what is left in stdout's buffer.

    Raises
    ------
    BrokenPipeError
        If the reader has gone.
    CannotRunError
        If it cannot be written, such as to a file on a full disk.
    """
    with _stdout():
        sys.stdout.flush()


@contextlib.contextmanager
def _stdout() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        raise CannotRunError(f"Standard output cannot be written: {reason(error)}.") from None


def prepare() -> None:
    """Make the streams bear what callers do to them.

    A closed stream leads nowhere: otherwise Python has none, and the next file that is opened
    gets its number. Characters that an encoding does not have come out as escapes, not as a
    crash. A width at which nothing can be read, or padding fills the screen, is not used.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # utf-8: what nobody reads must not fail to be encoded either
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    width = shutil.get_terminal_size().columns
    usable = str(min(max(width, _NARROWEST), _WIDEST))
    # rich believes whatever COLUMNS says, zero included
    if "COLUMNS" in os.environ or usable != str(width):
        os.environ["COLUMNS"] = usable
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal that can do more than print lines."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def finish() -> None:
    """Empty the buffers, into nothing where a stream cannot be written.

    Python flushes once more at exit and would complain then, and change the exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)
