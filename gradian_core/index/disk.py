"""The disk under an index: one builder at a time, and errors for people."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from gradian_core.errors import CannotRunError

__all__ = ["LESS_DISK", "disk_errors", "only_builder", "readable_size"]

LESS_DISK = (
    "Free some space, set cache_dir to a larger disk, or make the index smaller: "
    "grads.storage_dtype: float16, grads.module_filter, grads.projection_dim."
)

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def only_builder(folder: Path, wait: float) -> Iterator[None]:
    """Make the folder and hold its lock.

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
                f"Another process is building the index at {folder}.",
                hint="Wait until it has finished and run the same command again.",
            ) from None
    try:
        yield
    finally:
        lock.release()


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
