"""An attribution task in memory, as task engines see a real one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.data.example import Example
from gradian_core.data.rows import parse_row
from gradian_core.data.tokens import Supervision, TokenizedRows
from gradian_core.model.loaded import LoadedModel
from gradian_core.progress import NoProgress, Progress
from gradian_core.protocols import Checkpoint, QueryItem, QueryRows, ScoringContext
from gradian_core.testing.blocks import MemoryBlock, context_of

__all__ = ["MemoryTask"]

Array = NDArray[np.floating[Any]]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Point:
    """Implements :class:`gradian_core.protocols.GradientPoint` with one block."""

    block: MemoryBlock
    queries: Array

    @property
    def context(self) -> ScoringContext:
        return context_of(self.block, self.queries)

    @property
    def row_norms(self) -> Array:
        return np.asarray(np.sqrt(self.block.squared_norms))

    @property
    def losses(self) -> Array:
        return np.ones(self.block.n)

    def blocks(self) -> Iterator[tuple[MemoryBlock, Array]]:
        yield self.block, self.queries


def _unit(vector: Array) -> Array:
    return vector / max(float(np.linalg.norm(vector)), 1e-300)


class MemoryTask:
    """Implements :class:`gradian_core.protocols.AttributionTask` on pairs of prompt and answer.

    Gradients are counts of letters, scaled to length 1: rows that share text have gradients that
    agree, at every point alike, and none agrees with a query more than its own copy. There is no
    model.

    Parameters
    ----------
    rows
        Training rows.
    items
        What got worse.
    seed
        As the setting of that name.

    Attributes
    ----------
    notes : list[str]
        What the engine told the report.
    """

    loss_reduction = "mean"
    checkpoints: Sequence[Checkpoint] = (
        Checkpoint(path=Path("checkpoint-1"), step=1, learning_rate=1e-3),
    )

    def __init__(self, rows: Sequence[Pair], items: Sequence[Pair], *, seed: int = 0) -> None:
        self._rows, self._items = rows, items
        self.seed = seed
        self.notes: list[str] = []
        self.progress: Progress = NoProgress()

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self._rows)

    @property
    def q(self) -> int:
        """Number of queries."""
        return len(self._items)

    @cached_property
    def examples(self) -> Sequence[Example]:
        """The rows."""
        return tuple(_example(pair, i) for i, pair in enumerate(self._rows))

    @cached_property
    def items(self) -> Sequence[QueryItem]:
        """The items, with a wrong answer of the tuned model."""
        return tuple(
            QueryItem(
                example=_example(pair, i),
                prompt=pair[0],
                reference=pair[1],
                base_output=pair[1],
                tuned_output="zzz",
            )
            for i, pair in enumerate(self._items)
        )

    @cached_property
    def tokens(self) -> TokenizedRows:
        """The rows, one token a byte."""
        return _tokens(self._rows)

    def query_rows(self, signal: str | None = None) -> QueryRows:  # noqa: ARG002
        """Return one row a query."""
        return QueryRows(tokens=_tokens(self._items), weights=np.eye(self.q))

    def gradients(
        self,
        *,
        signal: str | None = None,  # noqa: ARG002
        adapter_scale: float = 1.0,  # noqa: ARG002
        checkpoint: Checkpoint | None = None,  # noqa: ARG002
    ) -> _Point:
        """Return the same gradients at every point."""
        rows = np.array([_unit(_letters(pair)) for pair in self._rows])
        queries = np.array([_unit(_letters(pair)) for pair in self._items])
        return _Point(block=MemoryBlock(rows, piece=3), queries=queries)

    def fresh_model(self) -> LoadedModel:
        """Raise: an engine that needs a model is tested on ``tiny_run``."""
        raise NotImplementedError("a task in memory has no model")

    def workdir(self, key: Mapping[str, object]) -> Path:  # noqa: ARG002
        """Return an empty folder."""
        return Path(tempfile.mkdtemp())

    def note(self, sentence: str) -> None:
        """Keep it."""
        self.notes.append(sentence)


def _example(pair: Pair, row: int) -> Example:
    return parse_row({"prompt": pair[0], "completion": pair[1]}, row, f"row {row}")


def _letters(pair: Pair) -> Array:
    counts = np.bincount([ord(c) % 32 for c in " ".join(pair).lower()], minlength=32)
    return counts.astype(np.float64) - 1.0


def _tokens(pairs: Sequence[Pair]) -> TokenizedRows:
    texts = [(prompt.encode(), answer.encode()) for prompt, answer in pairs]
    lengths = np.array([len(a) + len(b) for a, b in texts])
    answers = [np.arange(len(a) + len(b)) >= len(a) for a, b in texts]
    return TokenizedRows(
        ids=tuple(_example(pair, i).id for i, pair in enumerate(pairs)),
        rows=np.arange(len(pairs), dtype=np.int64),
        input_ids=np.frombuffer(b"".join(a + b for a, b in texts), np.uint8).astype(np.int32),
        supervised=np.concatenate(answers),
        offsets=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        full_lengths=lengths.astype(np.int32),
        full_supervised=np.array([int(mask.sum()) for mask in answers], np.int32),
        supervision=np.full(len(pairs), Supervision.MARKERS, dtype=np.uint8),
    )
