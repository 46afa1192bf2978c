"""Reading an index."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.errors import UsageError
from gradian_core.index.blocks import ShardFile, StoredBlock
from gradian_core.index.damage import DamagedIndexError
from gradian_core.index.hdf5 import open_checked
from gradian_core.index.manifest import BlockEntry, IndexManifest, ShardEntry, read_manifest
from gradian_core.index.shards import RowFacts, read_digest, read_facts, read_key
from gradian_core.text import excerpt

__all__ = ["INDEX_FILE", "GradientIndex", "joint_digest", "row_scales", "shard_path"]

INDEX_FILE = "index.h5"


def shard_path(folder: Path, number: int) -> Path:
    """Return the path of a shard; paths are never read from a file."""
    return folder / "shards" / f"{number:05d}.h5"


class GradientIndex:
    """Per-example gradients on disk; made by :meth:`open` or :func:`build.build`.

    Rows are in the index's own order (by length); ``row_numbers`` gives their places in the data
    set.

    Parameters
    ----------
    folder
        Folder of the index.
    manifest
        Its manifest.
    facts
        What is known of each row beside its gradient.
    notes
        What happened while it was built or opened, as sentences, beside the manifest's own.
    """

    def __init__(
        self, folder: Path, manifest: IndexManifest, facts: RowFacts, notes: tuple[str, ...] = ()
    ) -> None:
        self.folder = folder
        self.manifest = manifest
        self.notes = (*manifest.notes, *notes)
        self._facts = facts
        bounds = np.cumsum([0, *(shard.rows for shard in manifest.shards)]).tolist()
        self._shards = tuple(
            ShardFile(shard_path(folder, number), slice(start, stop))
            for number, (start, stop) in enumerate(pairwise(bounds))
        )

    @classmethod
    def open(cls, path: Path | str, *, notes: tuple[str, ...] = ()) -> GradientIndex:
        """Open a complete index, wherever it has been moved to.

        Raises
        ------
        InputError
            If it is not an index, its build has not finished, or a newer Gradian wrote it.
        DamagedIndexError
            If a file is missing, truncated, altered, or of another index or another build.
            Gradients are checked when they are read, or by :meth:`verify`.
        """
        folder = Path(path)
        manifest = read_manifest(folder)
        for number, shard in enumerate(manifest.shards):
            file = shard_path(folder, number)
            if not file.is_file():
                raise DamagedIndexError(file, "the file is missing")
            if file.stat().st_size != shard.size:
                raise DamagedIndexError(
                    file, f"it has {file.stat().st_size} bytes in place of {shard.size}"
                )
            with open_checked(file) as opened:
                _refuse_foreign_shard(opened, manifest, number)
        halves = manifest.inputs.spec.storage_dtype == "float16"
        with open_checked(folder / INDEX_FILE) as opened:
            if opened.attrs.get("shards") != joint_digest(manifest.shards):
                raise ValueError("it is of another index or another build")
            facts = read_facts(opened, manifest.n, len(manifest.blocks), scaled=halves)
            _check_positions(facts.positions, manifest)
        return cls(folder, manifest, facts, notes)

    @property
    def n(self) -> int:
        """Number of stored rows: those with a gradient."""
        return self.manifest.n

    @property
    def blocks(self) -> tuple[BlockEntry, ...]:
        """The blocks, in order."""
        return self.manifest.blocks

    @property
    def row_numbers(self) -> NDArray[np.int64]:
        """``(n,)`` place of each stored row in the data set as it was tokenised."""
        return self._facts.positions

    @property
    def losses(self) -> NDArray[np.float64]:
        """``(n,)`` mean loss of each stored row over its supervised tokens, in nats."""
        return self._facts.losses

    @property
    def supervised_counts(self) -> NDArray[np.int64]:
        """``(n,)`` supervised tokens of each stored row."""
        return self._facts.supervised_counts

    @property
    def squared_norms(self) -> NDArray[np.float64]:
        """``(n, blocks)`` squared norm of each stored gradient of the mean loss."""
        return self._facts.squared_norms

    def block(
        self,
        name: str,
        *,
        scales: NDArray[np.float64] | None = None,
        memory_limit: int = 1 << 30,
    ) -> StoredBlock:
        """Give one block to an engine.

        Parameters
        ----------
        name
            Name of the block.
        scales
            ``(n,)`` factor of each row (:func:`row_scales`); None for the gradients as stored.
        memory_limit
            Bytes; a block up to this size (as float32) is read from disk once and kept.
        """
        column = [block.name for block in self.blocks].index(name)
        return StoredBlock(
            self.blocks[column],
            column,
            self._shards,
            squared_norms=self.squared_norms[:, column],
            row_scales=None if scales is None or bool(np.all(scales == 1.0)) else scales,
            halves=self._facts.scales is not None,
            memory_limit=memory_limit,
        )

    def gather(self, rows: Sequence[int]) -> Mapping[str, NDArray[np.float32]]:
        """Return the gradients of a few rows, for looking at them.

        Parameters
        ----------
        rows
            Places in the data set, in any order.

        Returns
        -------
        dict
            Block name -> ``(len(rows), stored_dim)`` float32.

        Raises
        ------
        UsageError
            If a row is not in the index.
        """
        places = {int(position): place for place, position in enumerate(self.row_numbers)}
        missing = [row for row in rows if row not in places]
        if missing:
            raise UsageError(f"Row {missing[0]} has no gradient in the index at {self.folder}.")
        wanted = np.array([places[row] for row in rows], dtype=np.int64)
        found = {}
        for entry in self.blocks:
            out = np.empty((len(wanted), entry.stored_dim), dtype=np.float32)
            for span, gradients in self.block(entry.name, memory_limit=0).chunks():
                here = (wanted >= span.start) & (wanted < span.stop)
                out[here] = gradients[wanted[here] - span.start]
            found[entry.name] = out
        return found

    def verify(self) -> tuple[str, ...]:
        """Read everything and return a sentence for each shard that is damaged."""
        problems = []
        for number, (shard, entry) in enumerate(
            zip(self._shards, self.manifest.shards, strict=True)
        ):
            try:
                with open_checked(shard.path) as file:
                    _refuse_foreign_shard(file, self.manifest, number)
                    if read_digest(file, [block.name for block in self.blocks]) != entry.digest:
                        raise ValueError("its content is not what the manifest says")
            except DamagedIndexError as error:
                problems.append(error.message)
        return tuple(problems)


def joint_digest(shards: Sequence[ShardEntry]) -> str:
    """Return the digest that binds ``index.h5`` to its shards, in their order."""
    return hashlib.sha256("\n".join(shard.digest for shard in shards).encode()).hexdigest()


def _refuse_foreign_shard(file: Any, manifest: IndexManifest, number: int) -> None:
    """Compare what an open shard says of itself with the manifest; reads attributes only."""
    key = read_key(file)
    if key is None:
        raise ValueError("it is no shard of a gradient index")
    if key.index != manifest.id:
        raise ValueError(f"it belongs to another index, {excerpt(key.index, 40)}")
    if key.number != number:
        raise ValueError(f"it is shard {key.number:05d} of this index under another name")
    if file.attrs["digest"] != manifest.shards[number].digest:
        raise ValueError("its content is not what the manifest says: it is of another build")


def _check_positions(positions: NDArray[np.int64], manifest: IndexManifest) -> None:
    inside = (positions >= 0) & (positions < manifest.n_rows_total)
    if not inside.all() or len(np.unique(positions)) != len(positions):
        raise ValueError("its row numbers are not places in the data set")


def row_scales(
    index: GradientIndex, loss_reduction: str, normalization: str
) -> NDArray[np.float64]:
    """Return the factor that turns each stored gradient into the one that is scored.

    The index holds gradients of the mean loss, so neither setting needs another build.

    Parameters
    ----------
    index
        The index.
    loss_reduction
        ``mean``, or ``sum``: times the number of supervised tokens.
    normalization
        ``none``; ``token_count``: divided by the number of supervised tokens; ``l2``: divided by
        the norm over all blocks (a gradient of zero stays zero).

    Returns
    -------
    numpy.ndarray
        ``(n,)`` float64.
    """
    counts = index.supervised_counts.astype(np.float64)
    if loss_reduction not in {"mean", "sum"}:
        raise UsageError(f"There is no loss reduction {loss_reduction!r}; use mean or sum.")
    scales: NDArray[np.float64] = counts if loss_reduction == "sum" else np.ones(index.n)
    if normalization == "none":
        return scales
    if normalization == "token_count":
        return scales / counts
    if normalization == "l2":
        # Whatever the reduction multiplies a row by, its norm takes out again.
        norms = np.sqrt(index.squared_norms.sum(axis=1))
        scales = np.zeros(index.n)
        np.divide(1.0, norms, out=scales, where=norms > 0)
        return scales
    raise UsageError(f"There is no normalization {normalization!r}; use none, l2 or token_count.")
