"""Small things about files that several rooms need."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from gradian_core.errors import InputError

__all__ = ["reason", "refuse_lfs_pointer", "remove", "write_atomic"]

_LFS = b"version https://git-lfs"


def reason(error: Exception) -> str:
    """Return why a file could not be used, without the path that the system's words name."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error).rstrip(".") or type(error).__name__


def refuse_lfs_pointer(path: Path) -> None:
    """Raise :class:`InputError` if the file is a Git-LFS pointer in place of its content."""
    with path.open("rb") as file:
        if file.read(len(_LFS)) == _LFS:
            raise InputError(
                f"{path} is a Git-LFS pointer, not the file itself.",
                hint="Fetch the real file with: git lfs pull.",
            )


def write_atomic(path: Path, content: bytes | str) -> None:
    """Write a whole file or nothing: a reader never sees half of it, a crash leaves the old one.

    Raises
    ------
    OSError
        Naming ``path``.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        _replace(path, data)
    except OSError as error:
        # the temporary file's name, or none at all, helps nobody
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp gives 0600; a report is as readable as any file its user makes
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def remove(path: Path) -> None:
    """Remove what lies in the place of a file of ours, be it a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
