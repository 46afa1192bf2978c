"""Gradients of a run at the points that engines ask for, and where else engines look."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from gradian_core.attribution.point import Point, Queries
from gradian_core.attribution.task import Sources, Task
from gradian_core.data.encode import Encoded
from gradian_core.flows.checkpoints import find_checkpoints, last_learning_rate
from gradian_core.flows.index import open_or_build, training_index
from gradian_core.flows.queries import QueryPlanner
from gradian_core.flows.session import Session
from gradian_core.index.address import result_id, tokens_digest
from gradian_core.index.plan import stored_order
from gradian_core.index.reader import GradientIndex
from gradian_core.model.loaded import LoadedModel
from gradian_core.protocols import Checkpoint

__all__ = ["Points"]

_Place = tuple[float, Path | None]


class Points:
    """Opens or builds each index once, whichever engines ask for it.

    Parameters
    ----------
    session
        The run.
    encoded
        The training rows.
    planner
        The queries.
    force
        Take all gradients again, even those in the cache.
    """

    def __init__(
        self, session: Session, encoded: Encoded, planner: QueryPlanner, *, force: bool = False
    ) -> None:
        self.session = session
        self.planner = planner
        self.encoded = encoded
        self.order = stored_order(encoded.tokens)
        self.training: dict[_Place, GradientIndex] = {}
        self.queries: dict[tuple[str | None, _Place], GradientIndex] = {}
        self._points: dict[tuple[str | None, _Place], Point] = {}
        self._force = force

    def task(self, engine: str, owner: str) -> Task:
        """Return the task for one engine."""
        session = self.session
        return Task(
            examples=session.dataset,
            order=self.order,
            tokens=self.encoded.tokens,
            items=self.planner.items(),
            loss_reduction=session.config.grads.loss_reduction,
            sources=Sources(
                point=self.point,
                query_rows=lambda signal: self.planner.plan(signal).rows,
                checkpoints=self.checkpoints,
                model=self._model,
                workdir=lambda key: self._workdir(engine, owner, key),
            ),
            progress=session.progress,
            seed=session.config.seed,
        )

    def point(
        self,
        signal: str | None = None,
        adapter_scale: float = 1.0,
        checkpoint: Checkpoint | None = None,
    ) -> Point:
        """Return the gradients at one point; see :class:`~.protocols.AttributionTask`."""
        if signal == self.session.config.evaluation.query_signal:
            signal = None
        own = checkpoint is None or checkpoint.path == self.session.adapter
        place = (adapter_scale, None if own or checkpoint is None else checkpoint.path)
        if (signal, place) not in self._points:
            self._points[signal, place] = self._open(signal, place, checkpoint)
        return self._points[signal, place]

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Return the saved adapters of the run by step, the final one last."""
        return self._saved[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of the checkpoints; empty where none were asked for."""
        return self._saved[1] if "_saved" in vars(self) else ()

    @cached_property
    def _saved(self) -> tuple[tuple[Checkpoint, ...], tuple[str, ...]]:
        return find_checkpoints(self.session)

    def _open(self, signal: str | None, place: _Place, checkpoint: Checkpoint | None) -> Point:
        # queries first: they are few, and what fails on them fails early
        queries = self._query_index(signal, place)
        if place not in self.training:
            self.training[place] = training_index(
                self.session,
                self.encoded,
                adapter_scale=place[0],
                checkpoint=place[1],
                force=self._force,
            )
        config = self.session.config
        return Point(
            self.training[place],
            Queries(index=queries, combination=self.planner.plan(signal).plan.combination),
            loss_reduction=config.grads.loss_reduction,
            normalization=config.grads.normalization,
            memory_limit_mb=config.engine.memory_limit_mb,
            learning_rate=(
                last_learning_rate(self.session.run)
                if checkpoint is None
                else checkpoint.learning_rate
            ),
        )

    def _query_index(self, signal: str | None, place: _Place) -> GradientIndex:
        if (signal, place) not in self.queries:
            planned = self.planner.plan(signal)
            encoded, (scale, checkpoint) = planned.encoded, place
            self.queries[signal, place] = open_or_build(
                self.session,
                encoded,
                self.session.inputs(
                    dataset=tokens_digest(encoded.tokens), adapter_scale=scale, adapter=checkpoint
                ),
                self.session.cache / "queries",
                description="Query gradients",
                provenance={"queries": f"{len(planned.plan.combination)} {planned.plan.signal}"},
                checkpoint=checkpoint,
                force=self._force,
            )
        return self.queries[signal, place]

    def _model(self) -> LoadedModel:
        from gradian_core.model.load import load_model

        with self.session.progress.task("Loading a model for the engine", 1) as task:
            loaded = load_model(self.session.config)
            task.advance()
        return loaded

    def _workdir(self, engine: str, owner: str, key: Mapping[str, object]) -> Path:
        inputs = self.session.inputs(dataset=tokens_digest(self.encoded.tokens))
        queries = tokens_digest(self.planner.plan().encoded.tokens)
        settings = {
            "inputs": inputs.model_dump(mode="json"),
            "queries": queries,
            "owner": owner,
            "key": dict(key),
        }
        folder = self.session.cache / "engines" / engine / result_id("", settings)
        folder.mkdir(parents=True, exist_ok=True)
        return folder
