"""Scores of training rows: core streams the blocks, the engine does the maths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gradian_core.errors import GradianError, InputError, PluginError, UsageError
from gradian_core.index.manifest import BlockEntry
from gradian_core.index.reader import GradientIndex, row_scales
from gradian_core.protocols import BlockEngine, BlockGradients, ScoringContext

__all__ = ["Queries", "Scores", "score"]

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """What each training row did to each query; the sign is that of ``protocols``.

    Parameters
    ----------
    matrix
        ``(q, n_rows_total)`` float64, in the order of the file. Rows without a gradient have 0.
    scored
        ``(n_rows_total,)`` bool: False for rows without a gradient.
    context
        What the engine was told.
    reads
        How often each block of training gradients was read from disk.
    caveats
        The engine's own sentences about how far to trust it here.
    notes
        What was skipped or degraded, as sentences.
    """

    matrix: Matrix
    scored: NDArray[np.bool_]
    context: ScoringContext
    reads: Mapping[str, int]
    caveats: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def aggregate(self, how: str = "mean") -> Matrix:
        """Return ``(n_rows_total,)``: one score per row from those of all queries.

        Parameters
        ----------
        how
            ``mean``.
        """
        if how != "mean":
            raise UsageError(f"There is no aggregation {how!r}; use mean.")
        return np.asarray(self.matrix.mean(axis=0), dtype=np.float64)

    def predicted_loss_delta_if_removed(self, how: str = "mean") -> Matrix:
        """Return ``(n_rows_total,)``: predicted change of the query loss without each row."""
        return self.aggregate(how) / self.context.n_examples


def score(
    index: GradientIndex,
    queries: Queries,
    engine: BlockEngine,
    *,
    loss_reduction: str = "mean",
    normalization: str = "none",
    memory_limit_mb: int = 1024,
    learning_rate: float | None = None,
    n_checkpoints: int = 1,
    owner: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Scores:
    """Score every training row against every query, one block at a time.

    Nothing of the size of a whole gradient is ever held, and a block that fits into the memory
    limit is read from disk once, however many passes and queries there are. Rows without a
    gradient do not count: *n* is the number of rows with one, so that adding a row without a
    supervised token changes nobody's score.

    Parameters
    ----------
    index
        Training gradients.
    queries
        What to score against.
    engine
        The maths.
    loss_reduction
        ``mean`` or ``sum`` over supervised tokens, for training and query rows alike.
    normalization
        ``none``, ``l2`` or ``token_count``, for training rows (queries: the engine's own
        ``normalize_query``).
    memory_limit_mb
        For a block of training gradients.
    learning_rate, n_checkpoints
        For the engine; see :class:`~gradian_core.protocols.ScoringContext`.
    owner
        The engine's plugin, for error messages.
    progress
        Called with (blocks done, blocks to do).

    Raises
    ------
    InputError
        If the two indexes do not belong together, or one is damaged.
    PluginError
        If the engine fails or returns something else than finite ``(q, n)`` scores.
    """
    _refuse_unlike(index, queries.index)
    limit = memory_limit_mb << 20
    scales = row_scales(index, loss_reduction, normalization)
    weights, notes = _stored_weights(queries, loss_reduction)
    norms = _query_norms(queries.index, weights)
    context = ScoringContext(
        n_examples=index.n,
        query_norms=norms,
        learning_rate=learning_rate,
        n_checkpoints=n_checkpoints,
    )
    total = np.zeros((len(weights), index.n))
    reads = {}
    for done, entry in enumerate(index.blocks, start=1):
        block = index.block(entry.name, scales=scales, memory_limit=limit)
        for group in _groups(len(weights), entry, limit):
            vectors = _query_vectors(queries.index, entry.name, weights[group])
            some = replace(context, query_norms=norms[group])
            total[group] += _ask(engine, block, vectors, some, owner)
        reads[entry.name] = block.reads
        if progress is not None:
            progress(done, len(index.blocks))
    matrix = np.zeros((len(weights), index.manifest.n_rows_total))
    matrix[:, index.row_numbers] = total
    scored = np.zeros(index.manifest.n_rows_total, dtype=np.bool_)
    scored[index.row_numbers] = True
    return Scores(
        matrix=matrix,
        scored=scored,
        context=context,
        reads=reads,
        caveats=_caveats(engine, context, owner),
        notes=(*notes, *_zero_notes(index, norms)),
    )


def _refuse_unlike(index: GradientIndex, queries: GradientIndex) -> None:
    ours, theirs = index.manifest.inputs, queries.manifest.inputs
    same = {
        "adapter": ours.adapter == theirs.adapter,
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
    """Return the ``(q, dim)`` query gradients of one block."""
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


def _groups(count: int, entry: BlockEntry, limit: int) -> Iterator[slice]:
    """Cut queries into groups, so that an engine's few copies of them fit into the limit."""
    size = max(1, limit // (4 * 8 * entry.stored_dim))
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def _ask(
    engine: BlockEngine,
    block: BlockGradients,
    vectors: Matrix,
    context: ScoringContext,
    owner: str | None,
) -> Matrix:
    name = owner or type(engine).__name__
    try:
        found = np.asarray(engine.score_block(block, vectors, context))
    except (GradianError, MemoryError):
        raise
    except Exception as error:
        raise PluginError(
            f"The engine failed on block {block.name}: {type(error).__name__}: {error}.",
            owner=name,
        ) from error
    wanted = (len(vectors), block.n)
    if found.shape != wanted or found.dtype.kind not in "fiu":
        raise PluginError(
            f"The engine returned {found.dtype} of shape {found.shape} for block {block.name}, "
            f"not scores of shape {wanted}.",
            owner=name,
        )
    if not np.isfinite(found).all():
        raise PluginError(
            f"The engine returned scores that are not finite numbers for block {block.name}.",
            owner=name,
        )
    return found.astype(np.float64, copy=False)


def _caveats(engine: BlockEngine, context: ScoringContext, owner: str | None) -> tuple[str, ...]:
    try:
        return tuple(str(sentence) for sentence in engine.caveats(context))
    except Exception as error:
        raise PluginError(
            f"The engine failed to state its caveats: {type(error).__name__}: {error}.",
            owner=owner or type(engine).__name__,
        ) from error


def _zero_notes(index: GradientIndex, query_norms: Matrix) -> Iterator[str]:
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
