"""Gradients of rows and queries at one point of parameter space, streamed from their indexes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradian_core.errors import InputError
from gradian_core.index.blocks import StoredBlock
from gradian_core.index.manifest import BlockEntry
from gradian_core.index.reader import GradientIndex, row_scales
from gradian_core.protocols import ScoringContext

__all__ = ["Point", "Queries"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Queries:
    """Query gradients as combinations of the rows of an index.

    Parameters
    ----------
    index
        Index of the query rows, built like the training rows' (same adapter, same projection).
    combination
        ``(q, m)``: weight of each of its *m* rows in each query, such as +1 for the correct
        answer and -1 for what was said instead. Columns are places in the query data set.
    """

    index: GradientIndex
    combination: Matrix


class Point:
    """Implements :class:`gradian_core.protocols.GradientPoint` on two indexes.

    Parameters
    ----------
    index
        Training gradients.
    queries
        What to score against.
    loss_reduction
        ``mean`` or ``sum`` over supervised tokens, for training and query rows alike.
    normalization
        ``none``, ``l2`` or ``token_count``, for training rows (queries: the engine's own
        ``normalize_query``).
    memory_limit_mb
        For a block of training gradients.
    learning_rate
        See :class:`~gradian_core.protocols.ScoringContext`.

    Raises
    ------
    InputError
        If the two indexes do not belong together.
    """

    def __init__(
        self,
        index: GradientIndex,
        queries: Queries,
        *,
        loss_reduction: str = "mean",
        normalization: str = "none",
        memory_limit_mb: int = 1024,
        learning_rate: float | None = None,
    ) -> None:
        _refuse_unlike(index, queries.index)
        self.index = index
        self._queries = queries.index
        self._limit = memory_limit_mb << 20
        self._scales = row_scales(index, loss_reduction, normalization)
        self._weights, lacking = _stored_weights(queries, loss_reduction)
        self.context = ScoringContext(
            n_examples=index.n,
            query_norms=_query_norms(queries.index, self._weights),
            learning_rate=learning_rate,
        )
        self.notes = (*lacking, *_zero_notes(index, self.context.query_norms))

    @property
    def q(self) -> int:
        """Number of queries."""
        return len(self._weights)

    @property
    def row_norms(self) -> Matrix:
        """``(n,)`` float64: norm of each row over all blocks together."""
        norms = np.sqrt(self.index.squared_norms.sum(axis=1)) * self._scales
        return np.asarray(norms, dtype=np.float64)

    @property
    def losses(self) -> Matrix:
        """``(n,)`` float64: mean loss of each row over its supervised tokens, in nats."""
        return self.index.losses

    def blocks(self) -> Iterator[tuple[StoredBlock, Matrix]]:
        """Yield each block with the ``(q, dim)`` float64 queries within it."""
        for entry in self.index.blocks:
            yield self.block(entry), self.vectors(entry)

    def block(self, entry: BlockEntry) -> StoredBlock:
        """Give the training gradients of one block."""
        return self.index.block(entry.name, scales=self._scales, memory_limit=self._limit)

    def vectors(self, entry: BlockEntry, group: slice = slice(None)) -> Matrix:
        """Return the ``(q, dim)`` query gradients of one block, or of some queries only."""
        return _query_vectors(self._queries, entry.name, self._weights[group])

    def groups(self, entry: BlockEntry) -> Iterator[slice]:
        """Cut queries into groups, so that an engine's few copies of them fit into the limit."""
        size = max(1, self._limit // (4 * 8 * entry.stored_dim))
        for start in range(0, self.q, size):
            yield slice(start, min(start + size, self.q))


def _refuse_unlike(index: GradientIndex, queries: GradientIndex) -> None:
    ours, theirs = index.manifest.inputs, queries.manifest.inputs
    same = {
        "adapter": ours.adapter == theirs.adapter,
        "adapter scale": ours.adapter_scale == theirs.adapter_scale,
        "base model": ours.base == theirs.base,
        "blocks": index.blocks == queries.blocks,
        "projection": (ours.spec.projection_kind, ours.spec.projection_seed)
        == (theirs.spec.projection_kind, theirs.spec.projection_seed)
        or ours.spec.projection_dim is None,
    }
    different = [name for name, equal in same.items() if not equal]
    if different:
        raise InputError(
            f"The training gradients at {index.folder} and the query gradients at "
            f"{queries.folder} differ in: {', '.join(different)}.",
            hint="Build both with the same settings.",
        )


def _stored_weights(queries: Queries, loss_reduction: str) -> tuple[Matrix, list[str]]:
    """Turn weights of query rows in file order into weights of stored gradients."""
    index, combination = queries.index, np.asarray(queries.combination, dtype=np.float64)
    if combination.ndim != 2 or combination.shape[1] != index.manifest.n_rows_total:
        raise ValueError(
            f"combination has shape {combination.shape}, "
            f"and there are {index.manifest.n_rows_total} query rows"
        )
    if len(combination) == 0 or not np.isfinite(combination).all():
        raise ValueError("a combination needs at least one query and finite weights")
    notes = [
        f"Query row {row.id} has no gradient ({row.reason}); its queries lack it."
        for row in index.manifest.skipped
        if combination[:, row.position].any()
    ]
    weights = combination[:, index.row_numbers] * row_scales(index, loss_reduction, "none")
    return weights, notes


def _query_vectors(queries: GradientIndex, name: str, weights: Matrix) -> Matrix:
    block = queries.block(name, memory_limit=0)
    vectors = np.zeros((len(weights), block.dim))
    for rows, gradients in block.chunks():
        vectors += weights[:, rows] @ gradients.astype(np.float64, copy=False)
    return vectors


def _query_norms(queries: GradientIndex, weights: Matrix) -> Matrix:
    # A pass of its own: engines need the norm over all blocks before they see the first.
    squared = np.zeros(len(weights))
    for entry in queries.blocks:
        vectors = _query_vectors(queries, entry.name, weights)
        squared += np.einsum("qd,qd->q", vectors, vectors)
    return np.asarray(np.sqrt(squared), dtype=np.float64)


def _zero_notes(index: GradientIndex, query_norms: NDArray[np.floating]) -> Iterator[str]:
    zero = [
        entry.name
        for entry, total in zip(index.blocks, index.squared_norms.sum(axis=0), strict=True)
        if total == 0.0
    ]
    if zero:
        shown = ", ".join(zero[:3]) + (", …" if len(zero) > 3 else "")
        yield (
            f"{len(zero)} of {len(index.blocks)} blocks contribute nothing: the gradient of "
            f"every training row is zero there ({shown})."
        )
    silent = int((query_norms == 0.0).sum())
    if silent:
        yield f"{silent} of {len(query_norms)} queries have a zero gradient and score every row 0."
