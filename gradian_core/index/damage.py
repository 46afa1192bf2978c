"""What is said of a damaged index."""

from __future__ import annotations

from pathlib import Path

from gradian_core.errors import InputError

__all__ = ["DamagedIndexError"]


class DamagedIndexError(InputError):
    """A file of the index is missing, truncated, altered, or of another index."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(
            f"{path} is damaged: {what}.",
            hint="Run the same command with --force to build it again.",
        )
        self.path = path
