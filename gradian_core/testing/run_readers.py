"""What a reader of run folders promises."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from gradian_core.plugins.record import Provided
from gradian_core.plugins.registry import Registry
from gradian_core.protocols import RunReader
from gradian_core.specs import RunReaderSpec
from gradian_core.testing.promise import Promise, require

__all__ = ["promises_of"]


def promises_of(registry: Registry, provided: Provided[RunReaderSpec]) -> Iterator[Promise]:
    """Yield the promises of one run reader."""
    name = provided.spec.name
    yield Promise(
        id=f"run_reader:{name}:modest",
        says="it does not claim a folder in which it has nothing to read",
        test=lambda: _modest(registry.create("run_reader", name)),
    )


def _modest(reader: RunReader) -> None:
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder)
        (empty / "notes.txt").write_text("Nothing of a training tool.\n", encoding="utf-8")
        for path in (empty, empty / "notes.txt", empty / "not there"):
            require(
                reader.can_read(path) is False,
                f"can_read says {reader.can_read(path)!r} to a {path.name!r} that is no run.",
            )
