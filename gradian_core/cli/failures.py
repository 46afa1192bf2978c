"""What the user sees, and the exit code, when something goes wrong."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Iterator

from cyclopts import CycloptsError, UnknownCommandError

from gradian_core.__about__ import __version__
from gradian_core.cli.streams import say
from gradian_core.errors import CannotRunError, GradianError, UsageError
from gradian_core.plugins.failure import describe
from gradian_core.text import did_you_mean, excerpt

__all__ = ["CLOSED_PIPE", "INTERNAL", "INTERRUPTED", "show", "usage"]

INTERNAL = 4
INTERRUPTED = 130
CLOSED_PIPE = 141
"""What a shell reports for a program that a closed pipe ended."""


def show(error: BaseException, *, debug: bool) -> int:
    """Print an error for people on stderr and return the exit code.

    Parameters
    ----------
    error
        Whatever was raised.
    debug
        Print the traceback first.
    """
    if debug:
        with contextlib.suppress(OSError, ValueError):
            traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, KeyboardInterrupt):
        say("Interrupted. The same command, run again, goes on from what was finished.")
        return INTERRUPTED
    known = _for_people(error)
    if known is None:
        say(f"error: internal error in gradian {__version__}: {describe(error)}")
        say("help: Please report it, with the output of the same command and --debug.")
        return INTERNAL
    for line in known.message.splitlines():
        say(f"error: {line}")
    if known.hint:
        say(f"help: {known.hint}")
    return known.exit_code


def usage(error: CycloptsError) -> UsageError:
    """Put an error of the command line's parser into our form."""
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        return _unknown_command(error, error.unused_tokens[0])
    # Its verbose form is for authors of programs; str() is what asks for the message.
    error.verbose = False
    command = " ".join(["gradian", *(error.command_chain or ())])
    return UsageError(excerpt(str(error), 500), hint=f"See: {command} --help.")


def _unknown_command(error: UnknownCommandError, token: str) -> UsageError:
    # The parser's own suggestion imports every command, and fails if one of them does.
    names = [name for name in error.app or () if name.startswith("-") == token.startswith("-")]
    what = "option" if token.startswith("-") else "command"
    hint = did_you_mean(token, names) or f"There are: {', '.join(sorted(names))}."
    command = " ".join(["gradian", *(error.command_chain or ())])
    return UsageError(
        f"{command} has no {what} {excerpt(token, 80)}.", hint=f"{hint} See: {command} --help."
    )


def _for_people(error: BaseException) -> GradianError | None:
    """Return the error to show, None for a bug of ours."""
    if isinstance(error, CannotRunError):
        return error
    # Running out of memory in a plugin is no fault of the plugin.
    for link in _chain(error):
        if (resource := _resource_problem(link)) is not None:
            return resource
    if isinstance(error, GradianError):
        return error
    if isinstance(error, PermissionError) and error.filename:
        return CannotRunError(f"No permission for {error.filename}.")
    if isinstance(error, OSError) and error.errno == errno.EROFS and error.filename:
        return CannotRunError(f"{error.filename} cannot be written: the file system is read-only.")
    if isinstance(error, ImportError) and not (error.name or "gradian").startswith("gradian"):
        return CannotRunError(
            f"A library cannot be imported: {describe(error)}.",
            hint="See 'gradian doctor', or install it anew.",
        )
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__


def _resource_problem(error: BaseException) -> CannotRunError | None:
    # HDF5 raises an OSError without a number and puts the system's words into its own.
    if isinstance(error, OSError) and (
        error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        or os.strerror(errno.ENOSPC) in str(error)
    ):
        what = (
            "A file grew larger than this system allows"
            if error.errno == errno.EFBIG
            else "The disk is full"
        )
        where = f": {error.filename} cannot be written" if error.filename else ""
        return CannotRunError(
            f"{what}{where}.",
            hint=(
                "Free some space, or choose another folder for it: --out for reports, --cache-dir "
                "for what is cached. What was finished is kept."
            ),
        )
    # By name: torch's class must not be imported to be recognised, and its CPU allocator
    # raises a plain RuntimeError.
    if (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error))
    ):
        return CannotRunError(
            "The memory is not enough.",
            hint=(
                "Lower grads.batch_tokens or grads.batch_size, then grads.max_seq_length; turn "
                "on grads.gradient_checkpointing; while measuring, lower evaluation.batch_size."
            ),
        )
    return None
