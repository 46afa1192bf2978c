"""Scores of training rows: core streams the blocks, the engine does the maths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.attribution.aggregate import aggregate
from gradian_core.attribution.point import Matrix, Point, Queries
from gradian_core.errors import GradianError, PluginError
from gradian_core.index.reader import GradientIndex
from gradian_core.protocols import (
    AttributionTask,
    BlockEngine,
    BlockGradients,
    ScoringContext,
    TaskEngine,
)

__all__ = ["Scores", "score", "score_point", "score_task"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """What each training row did to each query; the sign is that of ``protocols``.

    Parameters
    ----------
    matrix
        ``(q, n_rows_total)`` float64, in the order of the file. Rows without a gradient have 0.
    scored
        ``(n_rows_total,)`` bool: False for rows without a gradient.
    reads
        How often each block of training gradients was read from disk; empty for an engine that
        reads what it likes.
    caveats
        The engine's own sentences about how far to trust it here.
    notes
        What was skipped or degraded, as sentences.
    """

    matrix: Matrix
    scored: NDArray[np.bool_]
    reads: Mapping[str, int] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def aggregate(self, how: str = "mean") -> Matrix:
        """Return ``(n_rows_total,)``: one score per row (:func:`aggregate.aggregate`)."""
        return aggregate(self.matrix, how)

    def predicted_loss_delta_if_removed(self) -> Matrix:
        """Return ``(n_rows_total,)``: predicted change of the mean query loss without each row.

        Always from the net effect: the harm to single items is no change of their mean.
        """
        return self.aggregate("mean") / int(self.scored.sum())


def score(
    index: GradientIndex,
    queries: Queries,
    engine: BlockEngine,
    *,
    loss_reduction: str = "mean",
    normalization: str = "none",
    memory_limit_mb: int = 1024,
    learning_rate: float | None = None,
    owner: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Scores:
    """Score every training row against every query, one block at a time.

    Parameters
    ----------
    index, queries, loss_reduction, normalization, memory_limit_mb, learning_rate
        As :class:`~gradian_core.attribution.point.Point`.
    engine, owner, progress
        As :func:`score_point`.

    Raises
    ------
    InputError
        If the two indexes do not belong together, or one is damaged.
    PluginError
        If the engine fails or returns something else than finite ``(q, n)`` scores.
    """
    point = Point(
        index,
        queries,
        loss_reduction=loss_reduction,
        normalization=normalization,
        memory_limit_mb=memory_limit_mb,
        learning_rate=learning_rate,
    )
    return score_point(point, engine, owner=owner, progress=progress)


def score_point(
    point: Point,
    engine: BlockEngine,
    *,
    owner: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Scores:
    """Score with an engine whose score is a sum over blocks.

    Nothing of the size of a whole gradient is ever held, and a block that fits into the memory
    limit is read from disk once, however many passes and queries there are. Rows without a
    gradient do not count: *n* is the number of rows with one, so that adding a row without a
    supervised token changes nobody's score.

    Parameters
    ----------
    point
        The gradients.
    engine
        The maths.
    owner
        The engine's plugin, for error messages.
    progress
        Called with (blocks done, blocks to do).

    Raises
    ------
    InputError
        If an index is damaged.
    PluginError
        If the engine fails or returns something else than finite ``(q, n)`` scores.
    """
    index, context = point.index, point.context
    name = owner or type(engine).__name__
    total = np.zeros((point.q, index.n))
    reads = {}
    for done, entry in enumerate(index.blocks, start=1):
        block = point.block(entry)
        for group in point.groups(entry):
            some = replace(context, query_norms=context.query_norms[group])
            total[group] += _ask_block(engine, block, point.vectors(entry, group), some, name)
        reads[entry.name] = block.reads
        if progress is not None:
            progress(done, len(index.blocks))
    return _in_file_order(
        total,
        index.row_numbers,
        index.manifest.n_rows_total,
        reads=reads,
        caveats=_sentences(lambda: engine.caveats(context), name),
        notes=point.notes,
    )


def score_task(
    task: AttributionTask,
    engine: TaskEngine,
    order: NDArray[np.integer],
    n_rows_total: int,
    *,
    owner: str,
) -> Scores:
    """Score with an engine that asks the task for what it needs.

    Parameters
    ----------
    task
        The task.
    engine
        The engine.
    order
        ``(n,)`` place of each of the task's rows in the data set.
    n_rows_total
        Rows of the data set.
    owner
        The engine's plugin, for error messages.

    Raises
    ------
    PluginError
        If the engine fails or returns something else than finite ``(q, n)`` scores.
    """
    try:
        found = engine.score(task)
    except (GradianError, MemoryError):
        raise
    except Exception as error:
        raise PluginError(
            f"The engine failed: {type(error).__name__}: {error}.", owner=owner
        ) from error
    total = _checked(found, (task.q, task.n), "", owner)
    return _in_file_order(
        total, order, n_rows_total, caveats=_sentences(lambda: engine.caveats(task), owner)
    )


def _in_file_order(
    total: Matrix, order: NDArray[np.integer], n_rows_total: int, **facts: Any
) -> Scores:
    """Put scores in the index's order where the data set has its rows."""
    matrix = np.zeros((len(total), n_rows_total))
    matrix[:, order] = total
    scored = np.zeros(n_rows_total, dtype=np.bool_)
    scored[order] = True
    return Scores(matrix=matrix, scored=scored, **facts)


def _ask_block(
    engine: BlockEngine,
    block: BlockGradients,
    vectors: Matrix,
    context: ScoringContext,
    owner: str,
) -> Matrix:
    try:
        found = engine.score_block(block, vectors, context)
    except (GradianError, MemoryError):
        raise
    except Exception as error:
        raise PluginError(
            f"The engine failed on block {block.name}: {type(error).__name__}: {error}.",
            owner=owner,
        ) from error
    return _checked(found, (len(vectors), block.n), f" for block {block.name}", owner)


def _checked(answer: object, wanted: tuple[int, int], where: str, owner: str) -> Matrix:
    found = np.asarray(answer)
    if found.shape != wanted or found.dtype.kind not in "fiu":
        raise PluginError(
            f"The engine returned {found.dtype} of shape {found.shape}{where}, "
            f"not scores of shape {wanted}.",
            owner=owner,
        )
    if not np.isfinite(found).all():
        raise PluginError(
            f"The engine returned scores that are not finite numbers{where}.", owner=owner
        )
    return found.astype(np.float64, copy=False)


def _sentences(ask: Callable[[], Sequence[str]], owner: str) -> tuple[str, ...]:
    try:
        return tuple(str(sentence) for sentence in ask())
    except Exception as error:
        raise PluginError(
            f"The engine failed to state its caveats: {type(error).__name__}: {error}.",
            owner=owner,
        ) from error
