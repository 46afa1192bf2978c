"""Small things about files that several rooms need."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gradian_core.errors import InputError

__all__ = ["refuse_lfs_pointer", "write_atomic"]

_LFS = b"version https://git-lfs"


def refuse_lfs_pointer(path: Path) -> None:
    """Raise :class:`InputError` if the file is a Git-LFS pointer in place of its content."""
    with path.open("rb") as file:
        if file.read(len(_LFS)) == _LFS:
            raise InputError(
                f"{path} is a Git-LFS pointer, not the file itself.",
                hint="Fetch the real file with: git lfs pull.",
            )


def write_atomic(path: Path, content: bytes | str) -> None:
    """Write a whole file or nothing: a reader never sees half of it, a crash leaves the old one."""
    data = content.encode() if isinstance(content, str) else content
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
