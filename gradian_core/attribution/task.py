"""What an engine is handed: rows, queries, and gradients wherever it wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from gradian_core.attribution.point import Point
from gradian_core.data.example import Example
from gradian_core.data.tokens import TokenizedRows
from gradian_core.errors import UsageError
from gradian_core.model.loaded import LoadedModel
from gradian_core.progress import Progress
from gradian_core.protocols import Checkpoint, QueryItem, QueryRows

__all__ = ["Sources", "Task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where a task gets what is not there yet; each is called when an engine first asks.

    Parameters
    ----------
    point
        Gradients at a point: ``(signal, adapter_scale, checkpoint)``.
    query_rows
        Queries under a signal, as tokens.
    checkpoints
        Saved adapters of the run.
    model
        Loads base model and adapter.
    workdir
        Folder of an engine's cache by the engine's own key.
    """

    point: Callable[[str | None, float, Checkpoint | None], Point]
    query_rows: Callable[[str | None], QueryRows]
    checkpoints: Callable[[], Sequence[Checkpoint]]
    model: Callable[[], LoadedModel]
    workdir: Callable[[Mapping[str, object]], Path]


class Task:
    """Implements :class:`gradian_core.protocols.AttributionTask` for one engine.

    Parameters
    ----------
    examples
        The data set.
    order
        ``(n,)`` place in it of each scored row, in the index's order.
    tokens
        The data set as tokens.
    items
        The items behind the queries.
    loss_reduction
        ``grads.loss_reduction``.
    sources
        Where the rest comes from.
    progress
        Where to report.
    seed
        For anything random.
    """

    def __init__(
        self,
        *,
        examples: Sequence[Example],
        order: NDArray[np.int64],
        tokens: TokenizedRows,
        items: Sequence[QueryItem],
        loss_reduction: str,
        sources: Sources,
        progress: Progress,
        seed: int,
    ) -> None:
        self.examples: Sequence[Example] = _Rows(examples, order)
        self.items = tuple(items)
        self.loss_reduction = loss_reduction
        self.progress = progress
        self.seed = seed
        self._order = order
        self._all_tokens = tokens
        self._tokens: TokenizedRows | None = None
        self._sources = sources
        self._notes: dict[str, None] = {}

    @property
    def n(self) -> int:
        """Number of scored rows."""
        return len(self._order)

    @property
    def q(self) -> int:
        """Number of queries."""
        return len(self.items)

    @property
    def tokens(self) -> TokenizedRows:
        """The scored rows as tokens."""
        if self._tokens is None:
            self._tokens = self._all_tokens.take(self._order)
        return self._tokens

    @property
    def checkpoints(self) -> Sequence[Checkpoint]:
        """Saved adapters of the run by step, the final one last."""
        return self._sources.checkpoints()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the engine and the points that it asked for had to say."""
        return tuple(self._notes)

    def query_rows(self, signal: str | None = None) -> QueryRows:
        """Return the queries as tokens."""
        return self._sources.query_rows(signal)

    def gradients(
        self,
        *,
        signal: str | None = None,
        adapter_scale: float = 1.0,
        checkpoint: Checkpoint | None = None,
    ) -> Point:
        """Take the gradients at one point, or find them in the cache.

        Raises
        ------
        UsageError
            If the scale is negative or not finite.
        """
        if not 0.0 <= adapter_scale < float("inf"):
            raise UsageError(f"An adapter scale of {adapter_scale} is not one; it is at least 0.")
        point = self._sources.point(signal, float(adapter_scale), checkpoint)
        for sentence in point.notes:
            self.note(sentence)
        return point

    def fresh_model(self) -> LoadedModel:
        """Load base model and adapter once more."""
        return self._sources.model()

    def workdir(self, key: Mapping[str, object]) -> Path:
        """Return a folder for the engine's own cache; made if it is missing."""
        return self._sources.workdir(key)

    def note(self, sentence: str) -> None:
        """Tell the report something; the same sentence counts once."""
        self._notes[str(sentence)] = None


class _Rows(Sequence[Example]):
    """Some rows of a data set in another order; a row is read when it is looked at."""

    def __init__(self, rows: Sequence[Example], order: NDArray[np.int64]) -> None:
        self._rows = rows
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, place: int) -> Example: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Example]: ...

    def __getitem__(self, place: int | slice) -> Example | Sequence[Example]:
        if isinstance(place, slice):
            return _Rows(self._rows, self._order[place])
        return self._rows[int(self._order[place])]
