"""The shards of one build: which are there already, which are missing, what joins them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradian_core.errors import CannotRunError
from gradian_core.files import remove
from gradian_core.index.collect import Collector
from gradian_core.index.damage import DamagedIndexError
from gradian_core.index.disk import LESS_DISK, disk_errors, readable_size
from gradian_core.index.hdf5 import (
    create_dataset,
    create_virtual,
    new_image,
    open_checked,
    publish,
)
from gradian_core.index.manifest import ShardEntry
from gradian_core.index.plan import BuildPlan
from gradian_core.index.reader import INDEX_FILE, joint_digest, shard_path
from gradian_core.index.shards import (
    RowFacts,
    ShardKey,
    read_digest,
    read_facts,
    read_key,
    write_shard,
)

__all__ = ["Job", "Progress"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Job:
    """A build under way.

    Parameters
    ----------
    folder
        Folder of the index.
    plan
        What it will hold.
    keys
        What each shard must have been made from.
    halves
        Whether it stores float16.
    """

    folder: Path
    plan: BuildPlan
    keys: tuple[ShardKey, ...]
    halves: bool

    def find_whole_shards(self, notes: list[str]) -> list[ShardEntry | None]:
        """Verify what an earlier build left; throw away what is not a part of this one."""
        shards = self.folder / "shards"
        if not shards.is_dir():
            remove(shards)
        wanted = {shard_path(self.folder, number).name for number in range(len(self.keys))}
        if shards.is_dir():
            for path in sorted(shards.iterdir()):
                if path.name not in wanted:
                    remove(path)
        found = [self._verified(number, notes) for number in range(len(self.keys))]
        reused = sum(entry is not None for entry in found)
        if reused:
            notes.append(f"{reused} of {len(found)} shards were there from an earlier build.")
        return found

    def _verified(self, number: int, notes: list[str]) -> ShardEntry | None:
        path = shard_path(self.folder, number)
        if not path.is_file():
            remove(path)
            return None
        try:
            with open_checked(path) as file:
                if read_key(file) != self.keys[number]:
                    notes.append(f"{path.name} came from other settings and was built again.")
                    return None
                digest = read_digest(file, [block.name for block in self.plan.blocks])
        except DamagedIndexError as error:
            notes.append(f"{error.message} It was built again.")
            return None
        return self._entry(number, digest)

    def _entry(self, number: int, digest: str) -> ShardEntry:
        span = self.plan.shards[number]
        size = shard_path(self.folder, number).stat().st_size
        return ShardEntry(rows=span.stop - span.start, size=size, digest=digest)

    def refuse_full_disk(self, entries: list[ShardEntry | None]) -> None:
        """Raise before any work if the shards to be written cannot fit."""
        need = sum(
            self.plan.shard_bytes(number) for number, entry in enumerate(entries) if entry is None
        )
        free = shutil.disk_usage(self.folder).free
        if need > free:
            raise CannotRunError(
                f"The index needs {readable_size(need)} more, but only {readable_size(free)} are "
                f"free where it lies ({self.folder}).",
                hint=LESS_DISK,
            )

    def write_missing_shards(
        self, entries: list[ShardEntry | None], collector: Collector, progress: Progress | None
    ) -> list[ShardEntry]:
        """Compute and write every shard that is not there yet."""
        total = len(self.plan.order)
        done = sum(entry.rows for entry in entries if entry is not None)

        def on_batch(rows: int) -> None:
            nonlocal done
            done += rows
            if progress is not None:
                progress(done, total)

        def compute(number: int) -> ShardEntry:
            facts, blocks = collector(self.plan.order[self.plan.shards[number]], on_batch)
            path = shard_path(self.folder, number)
            with disk_errors(self.folder):
                digest = write_shard(path, self.keys[number], facts, blocks)
            return self._entry(number, digest)

        with disk_errors(self.folder):
            (self.folder / "shards").mkdir(exist_ok=True)
        return [entry or compute(number) for number, entry in enumerate(entries)]

    def write_index_file(self, entries: Sequence[ShardEntry]) -> None:
        """Write ``index.h5``: the facts of all rows, and each block as one virtual dataset."""
        parts = []
        for number, span in enumerate(self.plan.shards):
            with open_checked(shard_path(self.folder, number)) as file:
                rows = span.stop - span.start
                parts.append(read_facts(file, rows, len(self.plan.blocks), scaled=self.halves))
        sources = [
            (shard_path(self.folder, number).relative_to(self.folder).as_posix(), span)
            for number, span in enumerate(self.plan.shards)
        ]
        with new_image() as (file, image):
            file.attrs["encoding-type"] = "gradian-gradient-index"
            file.attrs["encoding-version"] = "1.0"
            file.attrs["shards"] = joint_digest(entries)
            for name, array in RowFacts.join(parts).arrays().items():
                create_dataset(file, name, array)
            for block in self.plan.blocks:
                create_virtual(
                    file,
                    f"blocks/{block.name}",
                    block.stored_dim,
                    "<f2" if self.halves else "<f4",
                    sources,
                )
        with disk_errors(self.folder):
            publish(self.folder / INDEX_FILE, image)
