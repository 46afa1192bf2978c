"""Engine scores."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gradian_core.attribution.score import Scores, score_point, score_task
from gradian_core.flows.points import Points
from gradian_core.flows.session import counted
from gradian_core.protocols import BlockEngine, TaskEngine

__all__ = ["EngineRun", "run_engine", "score_with"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineRun:
    """What one engine gave.

    Parameters
    ----------
    name
        Its name.
    scores
        Its scores for each query.
    total
        ``(n_rows_total,)`` aggregated as configured, in file order: what ranks the rows.
    net
        ``(n_rows_total,)`` mean over the queries: what removals are predicted from.
    """

    name: str
    scores: Scores
    total: NDArray[np.float64]
    net: NDArray[np.float64]


def run_engine(name: str, engine: BlockEngine | TaskEngine, points: Points) -> EngineRun:
    """Score every training row with one engine, and aggregate as configured."""
    scores = score_with(name, engine, points)
    how = points.session.config.evaluation.aggregation
    return EngineRun(
        name=name, scores=scores, total=scores.aggregate(how), net=scores.aggregate("mean")
    )


def score_with(name: str, engine: BlockEngine | TaskEngine, points: Points) -> Scores:
    """Score every training row against every query with one engine."""
    session = points.session
    owner = session.registry.engines[name].owner
    if isinstance(engine, BlockEngine):
        point = points.point()
        with counted(session.progress, f"Scoring with {name}") as report:
            return score_point(point, engine, owner=owner, progress=report)
    task = points.task(name, owner)
    scores = score_task(task, engine, points.order, len(points.encoded.tokens), owner=owner)
    return replace(scores, notes=task.notes)
