"""The disk under an index: one builder at a time, and errors for people."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from gradian_core.errors import CannotRunError
from gradian_core.files import write_atomic
from gradian_core.text import excerpt

__all__ = ["LESS_DISK", "disk_errors", "only_builder", "readable_size"]

LESS_DISK = (
    "Free some space, set cache_dir to a larger disk, or make the index smaller: "
    "grads.storage_dtype: float16, grads.module_filter, grads.projection_dim."
)

_BUILDER = "builder.json"
"""Who holds the lock; for people only, never asked whether it is held."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def only_builder(folder: Path, wait: float) -> Iterator[None]:
    """Make the folder and hold its lock.

    The operating system lets go of the lock of a process that ends, however it ends.

    Parameters
    ----------
    folder
        Folder of an index.
    wait
        Seconds to wait for another process; negative: for ever.

    Raises
    ------
    CannotRunError
        If another process holds the lock for longer, or the folder cannot be written.
    """
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "build.lock")
        try:
            lock.acquire(timeout=wait)
        except Timeout:
            raise CannotRunError(
                f"Another process is building the index at {folder}{_holder(folder)}.",
                hint="Wait until it has finished and run the same command again.",
            ) from None
    builder = folder / _BUILDER
    try:
        with disk_errors(folder):
            since = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
            body = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
            write_atomic(builder, json.dumps(body))
        yield
    finally:
        builder.unlink(missing_ok=True)
        lock.release()


def _holder(folder: Path) -> str:
    """Say who holds the lock, as far as it is written down."""
    try:
        body = json.loads((folder / _BUILDER).read_bytes())
        who = f" (process {int(body['pid'])} on {body['host']}, since {body['since']})"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f" {excerpt(who, 200)}"


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn what the operating system says about a folder into an error for people.

    Raises
    ------
    CannotRunError
        In place of any :class:`OSError` in the body.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _FULL:
            raise CannotRunError(
                f"The index at {folder} cannot be written: {reason}. Whole shards are kept.",
                hint=LESS_DISK,
            ) from error
        raise CannotRunError(f"The index at {folder} cannot be written: {reason}.") from error


def readable_size(count: int) -> str:
    """Return a number of bytes as people say it."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
