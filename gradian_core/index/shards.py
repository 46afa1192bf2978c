"""Shards: what lies in one, how it is written and how it is read back.

Layout (attributes ``encoding-type`` and ``encoding-version`` on the root)::

    positions            (rows,) int64           place of the row in the data set
    losses               (rows,) float64         mean loss over the supervised tokens, nats
    supervised_counts    (rows,) int64           supervised tokens
    squared_norms        (rows, blocks) float64  of the gradients as stored
    scales               (rows, blocks) float32  float16 storage only: gradient = code * scale
    blocks/<name>        (rows, stored_dim)      chunks of whole rows, fletcher32, uncompressed
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.index.hdf5 import create_dataset, new_image, publish, row_bytes

__all__ = ["RowFacts", "ShardKey", "read_digest", "read_facts", "read_key", "write_shard"]

ENCODING = {"encoding-type": "gradian-gradient-shard", "encoding-version": "1.0"}

_HASHED_AT_ONCE = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardKey:
    """What a shard must have been made from to be taken as a part of a build.

    Parameters
    ----------
    index
        Id of the index.
    number
        Place of the shard in it.
    rows
        Digest of its rows: ids, tokens and loss mask.
    """

    index: str
    number: int
    rows: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowFacts:
    """What is known of each row beside its gradient; shapes as in the module's docstring."""

    positions: NDArray[np.int64]
    losses: NDArray[np.float64]
    supervised_counts: NDArray[np.int64]
    squared_norms: NDArray[np.float64]
    scales: NDArray[np.float32] | None = None

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return the arrays by name, in a fixed order."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: array for name, array in found.items() if array is not None}

    @classmethod
    def join(cls, parts: Sequence[RowFacts]) -> RowFacts:
        """Put the facts of consecutive shards together."""
        names = parts[0].arrays()
        return cls(**{n: np.concatenate([part.arrays()[n] for part in parts]) for n in names})


def write_shard(path: Path, key: ShardKey, facts: RowFacts, blocks: dict[str, NDArray[Any]]) -> str:
    """Write one shard.

    Parameters
    ----------
    path
        ``shards/NNNNN.h5``.
    key
        What it was made from.
    facts
        Of its rows.
    blocks
        ``(rows, stored_dim)`` stored values by block name. Emptied on the way, so that a shard
        is in memory about once and not twice.

    Returns
    -------
    str
        SHA-256 of its content.

    Raises
    ------
    OSError
        If it cannot be written; nothing is left behind.
    """
    digest = hashlib.sha256()
    with new_image() as (file, image):
        file.attrs.update(ENCODING)
        file.attrs.update({"index": key.index, "number": key.number, "rows": key.rows})
        for name, array in facts.arrays().items():
            _feed(digest, name, array)
            create_dataset(file, name, array)
        for name in list(blocks):
            array = blocks.pop(name)
            _feed(digest, f"blocks/{name}", array)
            create_dataset(file, f"blocks/{name}", array)
        file.attrs["digest"] = digest.hexdigest()
    publish(path, image)
    return digest.hexdigest()


def read_key(file: Any) -> ShardKey | None:
    """Return what an open shard says it was made from; None for another format."""
    attributes = file.attrs
    if any(attributes.get(name) != value for name, value in ENCODING.items()):
        return None
    return ShardKey(
        index=str(attributes["index"]),
        number=int(attributes["number"]),
        rows=str(attributes["rows"]),
    )


def read_facts(file: Any, rows: int, blocks: int, *, scaled: bool) -> RowFacts:
    """Read what is known of each row, in a shard or in ``index.h5``.

    Raises
    ------
    ValueError
        If something has another shape or type than it should.
    """
    wanted: dict[str, tuple[str, tuple[int, ...]]] = {
        "positions": ("<i8", (rows,)),
        "losses": ("<f8", (rows,)),
        "supervised_counts": ("<i8", (rows,)),
        "squared_norms": ("<f8", (rows, blocks)),
    }
    if scaled:
        wanted["scales"] = ("<f4", (rows, blocks))
    arrays = {}
    for name, (dtype, shape) in wanted.items():
        dataset = file[name]
        if dataset.shape != shape or dataset.dtype != np.dtype(dtype):
            raise ValueError(f"{name} is {dataset.dtype} {dataset.shape}, not {dtype} {shape}")
        arrays[name] = dataset[...]
    return RowFacts(**arrays)


def read_digest(file: Any, names: Sequence[str]) -> str:
    """Read an open shard wholly and return its digest.

    Parameters
    ----------
    file
        The shard.
    names
        Its blocks, in order.

    Raises
    ------
    ValueError
        If the content is not what was written.
    """
    digest = hashlib.sha256()
    for name in (field.name for field in fields(RowFacts)):
        if name in file:
            _feed(digest, name, file[name])
    for name in names:
        _feed(digest, f"blocks/{name}", file[f"blocks/{name}"])
    if digest.hexdigest() != file.attrs["digest"]:
        raise ValueError("its content is not what was written")
    return digest.hexdigest()


def _feed(digest: Any, name: str, array: Any) -> None:
    """Add name, type, shape and values of an array or a dataset to a digest."""
    digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
    step = max(1, _HASHED_AT_ONCE // max(1, row_bytes(array)))
    for start in range(0, len(array), step):
        digest.update(np.ascontiguousarray(array[start : start + step]))
