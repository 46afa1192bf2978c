"""One block of an index, as engines see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.index.codec import decode
from gradian_core.index.hdf5 import chunk_rows, open_checked
from gradian_core.index.manifest import BlockEntry

__all__ = ["ShardFile", "StoredBlock"]

READ_BYTES = 32 << 20
"""Gradients read from disk at once: small beside a block, large beside opening a file."""

PIECE_BYTES = 2 << 20
"""Gradients handed to an engine at once. Engines convert them to float64 and go over them more
than once, which is several times as fast as long as they stay in the processor's cache."""

Chunk = tuple[slice, NDArray[np.floating[Any]]]


@dataclass(frozen=True, slots=True)
class ShardFile:
    """A shard and the rows of the index that lie in it."""

    path: Path
    rows: slice


class StoredBlock:
    """Implements :class:`gradian_core.protocols.BlockGradients` on the shards of an index.

    Parameters
    ----------
    entry
        The block.
    column
        Its place among the blocks.
    shards
        All shards, in order.
    squared_norms
        ``(n,)`` float64, of the stored gradients.
    row_scales
        ``(n,)`` float64 factor of each row, or None where all are 1.
    halves
        Whether it is stored as float16 with a scale per row.
    memory_limit
        Bytes. A block that is not larger in float32 is read once and kept.
    """

    def __init__(
        self,
        entry: BlockEntry,
        column: int,
        shards: Sequence[ShardFile],
        *,
        squared_norms: NDArray[np.float64],
        row_scales: NDArray[np.float64] | None,
        halves: bool,
        memory_limit: int,
    ) -> None:
        self.name = entry.name
        self.dim = entry.stored_dim
        self.exact_dim = entry.dim
        self.n = len(squared_norms)
        self.reads = 0
        self._column = column
        self._shards = shards
        self._row_scales = row_scales
        self._halves = halves
        self._keep = self.n * self.dim * 4 <= memory_limit
        self._kept: NDArray[np.float32] | None = None
        norms = squared_norms if row_scales is None else squared_norms * row_scales**2
        # A plugin gets these arrays; what it writes into them would change other scores.
        self.squared_norms = _read_only(norms)

    def chunks(self) -> Iterator[Chunk]:
        """Yield ``(rows, gradients)``: float32, or float64 where rows have factors.

        The product with a factor is not rounded to float32, so that it agrees with
        ``squared_norms``: closed forms subtract numbers that are almost equal.
        """
        step = max(1, PIECE_BYTES // (self.dim * 4))
        for whole, values in self._source():
            for start in range(0, len(values), step):
                gradients = values[start : start + step]
                rows = slice(whole.start + start, whole.start + start + len(gradients))
                if self._row_scales is None:
                    yield rows, gradients
                else:
                    yield rows, gradients.astype(np.float64) * self._row_scales[rows, None]

    def _source(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        if not self._keep:
            yield from self._read()
            return
        if self._kept is None:
            kept = np.empty((self.n, self.dim), dtype=np.float32)
            for rows, gradients in self._read():
                kept[rows] = gradients
            self._kept = _read_only(kept)
        yield slice(0, self.n), self._kept

    def _read(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        self.reads += 1
        whole = chunk_rows(self.dim * (2 if self._halves else 4))
        step = max(1, READ_BYTES // (self.dim * 4) // whole * whole)
        for shard in self._shards:
            # Not held open while the engine works: its errors are not the file's.
            for start in range(shard.rows.start, shard.rows.stop, step):
                rows = slice(start, min(start + step, shard.rows.stop))
                yield rows, self._read_piece(shard, rows)

    def _read_piece(self, shard: ShardFile, rows: slice) -> NDArray[np.float32]:
        local = slice(rows.start - shard.rows.start, rows.stop - shard.rows.start)
        with open_checked(shard.path) as file:
            dataset = file[f"blocks/{self.name}"]
            shape = (shard.rows.stop - shard.rows.start, self.dim)
            dtype = np.dtype("<f2" if self._halves else "<f4")
            if dataset.shape != shape or dataset.dtype != dtype:
                raise ValueError(f"{self.name} is {dataset.dtype} {dataset.shape}, not {shape}")
            if self._halves:
                return decode(dataset[local], file["scales"][local, self._column])
            values: NDArray[np.float32] = dataset[local]
            return values


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
