"""Where the files of a run lie, given its folder, a checkpoint, its adapter or one file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ._files import files_of
from ._peft import CONFIG
from ._state import STATE, checkpoints

__all__ = ["Places", "is_lfs_pointer"]


def is_lfs_pointer(path: Path) -> bool:
    """Return whether a file is a Git-LFS pointer."""
    try:
        with path.open("rb") as file:
            return file.read(23) == b"version https://git-lfs"
    except OSError:
        return False


@dataclass(frozen=True)
class Places:
    """The folders of a run, best first.

    Parameters
    ----------
    given
        What the user named. A single file is read by itself, without its neighbours.
    """

    given: Path

    @cached_property
    def checkpoints(self) -> list[tuple[int, Path]]:
        """Checkpoints of the run by step; only itself where a checkpoint was named."""
        if not self.given.is_dir() or self._is_checkpoint:
            return []
        inside = checkpoints(self.given)
        return inside or (checkpoints(self.given.parent) if self._is_adapter_only else [])

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """The named folder, its parent where that is the run's, and the last checkpoint."""
        if not self.given.is_dir():
            return ()
        folders = [self.given]
        if self._is_checkpoint:
            folders.append(self.given.resolve().parent)
        if self.borrowed is not None:
            folders.append(self.borrowed)
        if self.checkpoints:
            folders.append(self.checkpoints[-1][1])
        return tuple(folders)

    @property
    def state_folders(self) -> tuple[Path, ...]:
        """Where the trainer's state may lie; a checkpoint that was named has its own."""
        return self.folders[:1] if self._is_checkpoint else self.folders

    def find(self, *names: str) -> Path | None:
        """Return the first of some files in the first folder that has one of them."""
        for folder in self.folders:
            for name in names:
                if (folder / name).is_file():
                    return folder / name
        return None

    def matching(self, *patterns: str) -> list[Path]:
        """Return the files that match in the first folder that has any."""
        for folder in self.folders:
            for pattern in patterns:
                if matches := files_of(folder, pattern):
                    return matches
        return []

    @cached_property
    def borrowed(self) -> Path | None:
        """The parent of an adapter's folder, if it holds the run that the adapter is from."""
        if not self.given.is_dir() or self._is_checkpoint or not self._is_adapter_only:
            return None
        parent = self.given.resolve().parent
        holds = any((parent / name).is_file() for name in (STATE, "training_args.bin"))
        return parent if holds or self.checkpoints else None

    @cached_property
    def _is_checkpoint(self) -> bool:
        return re.fullmatch(r"checkpoint-\d+", self.given.resolve().name) is not None

    @cached_property
    def _is_adapter_only(self) -> bool:
        return (
            (self.given / CONFIG).is_file()
            and not (self.given / STATE).is_file()
            and not checkpoints(self.given)
        )
