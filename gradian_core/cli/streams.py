"""Standard output and standard error that do not break."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

from gradian_core.text import safe_text

__all__ = ["discard_stdout", "is_terminal", "prepare", "put", "say"]


def put(text: str) -> None:
    """Write a command's result to stdout."""
    print(text)  # noqa: T201 - the one place


def say(line: str) -> None:
    """Write one line about the work, made safe to print, to stderr."""
    print(safe_text(line), file=sys.stderr)  # noqa: T201 - the one place


def prepare() -> None:
    """Let characters that an encoding does not have come out as escapes, not as a crash."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal that can do more than print lines."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def discard_stdout() -> None:
    """Send what is left in stdout's buffer nowhere: its reader has gone.

    Python flushes stdout once more at exit and would complain about the closed pipe then.
    """
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
