"""What a build will store, decided before any gradient is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradian_core.data.tokens import TokenizedRows
from gradian_core.errors import InputError
from gradian_core.gradients.types import Block
from gradian_core.index.manifest import BlockEntry, GradientSpec, SkippedRow

__all__ = ["BuildPlan", "plan_build", "skip_notes", "skipped_rows", "stored_order"]

SHARD_BYTES = 256 << 20
"""Most bytes of gradients in a shard, which is what a build holds in memory."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BuildPlan:
    """The contents of an index to be.

    Parameters
    ----------
    order
        ``(n,)`` places in the data set of the rows that are stored, longest first.
    shards
        Consecutive runs of ``order``.
    blocks
        What is stored of each block.
    row_bytes
        Bytes of one stored gradient.
    skipped
        Rows without a gradient.
    notes
        What is skipped or degraded, as sentences.
    """

    order: NDArray[np.int64]
    shards: tuple[slice, ...]
    blocks: tuple[BlockEntry, ...]
    row_bytes: int
    skipped: tuple[SkippedRow, ...]
    notes: tuple[str, ...]

    def shard_bytes(self, number: int) -> int:
        """Return about how many bytes a shard will have on disk."""
        span = self.shards[number]
        # Norms and scales come to 12 bytes a row and block; HDF5's own tables to less than 2 %.
        facts = 12 * len(self.blocks) + 24
        return int(1.02 * (span.stop - span.start) * (self.row_bytes + facts)) + (64 << 10)


def plan_build(
    tokenized: TokenizedRows, blocks: Sequence[Block], spec: GradientSpec, chunk_size: int
) -> BuildPlan:
    """Decide rows, order, shards and stored sizes; a function of its arguments alone.

    Parameters
    ----------
    tokenized
        The data set.
    blocks
        The blocks that are captured.
    spec
        Projection and storage type.
    chunk_size
        Most rows in a shard; about 256 MiB is the other limit.

    Raises
    ------
    InputError
        If there is no block, or no row has a supervised token.
    """
    if not blocks:
        raise InputError("There is no LoRA block to index.")
    order = stored_order(tokenized)
    if len(order) == 0:
        raise InputError(
            f"None of the {len(tokenized)} rows has a supervised token, so there is no gradient.",
            hint="Check the prompt and answer fields, the chat template and max_seq_length.",
        )
    entries = tuple(_entry(block, spec.projection_dim) for block in blocks)
    itemsize = 2 if spec.storage_dtype == "float16" else 4
    row_bytes = itemsize * sum(entry.stored_dim for entry in entries)
    rows = max(1, min(chunk_size, SHARD_BYTES // row_bytes))
    starts = range(0, len(order), rows)
    skipped = skipped_rows(tokenized, spec.max_seq_length)
    return BuildPlan(
        order=order,
        shards=tuple(slice(start, min(start + rows, len(order))) for start in starts),
        blocks=entries,
        row_bytes=row_bytes,
        skipped=skipped,
        notes=(*skip_notes(skipped, len(tokenized)), *_projection_notes(entries, spec)),
    )


def stored_order(tokenized: TokenizedRows) -> NDArray[np.int64]:
    """Return the places of the rows that have a gradient, in the order of an index."""
    kept = np.flatnonzero(tokenized.supervised_counts > 0)
    # Longest first: what does not fit into memory fails in the first minute, and the time left
    # is never underestimated. Stable, so that equal lengths stay in file order.
    return kept[np.argsort(-tokenized.lengths[kept], kind="stable")].astype(np.int64)


def skipped_rows(tokenized: TokenizedRows, max_seq_length: int) -> tuple[SkippedRow, ...]:
    """Return the rows without a gradient, in file order."""
    places = np.flatnonzero(tokenized.supervised_counts == 0)
    return tuple(_skipped(tokenized, int(place), max_seq_length) for place in places)


def _entry(block: Block, width: int | None) -> BlockEntry:
    return BlockEntry(
        name=block.name,
        parameters=block.parameters,
        shapes=block.shapes,
        dim=block.dim,
        stored_dim=block.dim if width is None else min(width, block.dim),
    )


def _skipped(tokenized: TokenizedRows, position: int, max_seq_length: int) -> SkippedRow:
    reason = (
        f"its supervised tokens lie beyond max_seq_length {max_seq_length}"
        if tokenized.full_supervised[position] > 0
        else "it has no supervised token"
    )
    return SkippedRow(position=position, id=tokenized.ids[position], reason=reason)


def skip_notes(skipped: Sequence[SkippedRow], total: int) -> tuple[str, ...]:
    """Return a sentence for each reason for which rows of ``total`` were skipped."""
    notes = []
    for reason in sorted({row.reason for row in skipped}):
        ids = [row.id for row in skipped if row.reason == reason]
        shown = ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")
        notes.append(
            f"{len(ids)} of {total} rows were skipped and score 0; of each holds: {reason} "
            f"({shown})."
        )
    return tuple(notes)


def _projection_notes(blocks: Sequence[BlockEntry], spec: GradientSpec) -> tuple[str, ...]:
    whole = [block.name for block in blocks if block.stored_dim == block.dim]
    if spec.projection_dim is None or not whole:
        return ()
    sentence = (
        f"{len(whole)} of {len(blocks)} blocks are stored exactly: they have no more than "
        f"projection_dim = {spec.projection_dim} components."
    )
    return (sentence,)
