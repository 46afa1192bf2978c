"""Query gradients and engine scores."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradian_core.attribution.query import (
    FALLBACK_ROWS,
    QueryPlan,
    plan_queries,
    plan_without_target,
    without,
)
from gradian_core.attribution.score import Queries, Scores, score
from gradian_core.data.encode import Encoded, encode
from gradian_core.errors import CannotRunError
from gradian_core.evaluation.result import CapabilityResult
from gradian_core.flows.index import open_or_build
from gradian_core.flows.session import Session, counted
from gradian_core.index.address import tokens_digest
from gradian_core.index.reader import GradientIndex
from gradian_core.protocols import BlockEngine
from gradian_core.runs.artifact import RunArtifact
from gradian_core.specs import MetricSpec

__all__ = ["EngineRun", "PlannedQueries", "build_queries", "last_learning_rate", "run_engine"]

_NO_LIMIT = 1 << 20
"""Queries are not truncated: the evaluation has already refused what does not fit."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedQueries:
    """Query gradients on disk, with the plan that they follow.

    Parameters
    ----------
    plan
        Which rows, and how they combine.
    index
        Their gradients.
    notes
        What was left out, as sentences.
    """

    plan: QueryPlan
    index: GradientIndex
    notes: tuple[str, ...] = ()


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
        ``(n_rows_total,)`` aggregated, in file order.
    """

    name: str
    scores: Scores
    total: NDArray[np.float64]


def build_queries(
    session: Session,
    measured: CapabilityResult | None,
    spec: MetricSpec,
    training: Encoded,
    *,
    force: bool = False,
) -> PlannedQueries:
    """Plan the queries and take their gradients, or find them in the cache.

    Parameters
    ----------
    session
        The run.
    measured
        The capability; None where training rows stand in for it.
    spec
        Its metric.
    training
        The training rows.
    force
        Take the gradients again even if they are there.

    Raises
    ------
    CannotRunError
        If no query has a supervised token.
    """
    grads = session.config.grads
    if measured is None or session.eval_dataset is None:
        usable = np.flatnonzero(training.tokens.supervised_counts)
        plan = plan_without_target([session.dataset[i] for i in usable[:FALLBACK_ROWS].tolist()])
        limit = grads.max_seq_length
    else:
        plan = plan_queries(
            measured, session.eval_dataset, spec, session.config.evaluation.query_signal
        )
        limit = _NO_LIMIT
    encoded = _encode(session, plan, limit)
    unusable = np.flatnonzero(encoded.tokens.supervised_counts == 0)
    notes: tuple[str, ...] = ()
    if unusable.size:
        before = len(plan.combination)
        plan = without(plan, unusable.tolist())
        lost = before - len(plan.combination)
        note = f"{lost} of {before} queries were left out: an answer has no supervised token."
        notes = (note,)
        if not len(plan.combination):
            raise CannotRunError(
                "No query has a token that can be supervised, so there is nothing to attribute.",
                hint="Look at the answers in the eval data.",
            )
        encoded = _encode(session, plan, limit)
    index = open_or_build(
        session,
        encoded,
        session.inputs(dataset=tokens_digest(encoded.tokens)),
        session.cache / "queries",
        description="Query gradients",
        provenance={"queries": f"{len(plan.combination)} {plan.signal}"},
        force=force,
    )
    return PlannedQueries(plan=plan, index=index, notes=(*encoded.notes, *notes))


def _encode(session: Session, plan: QueryPlan, limit: int) -> Encoded:
    return encode(plan.examples, session.tokenizer, max_seq_length=limit, supervise="last")


def run_engine(
    session: Session,
    name: str,
    engine: BlockEngine,
    index: GradientIndex,
    queries: PlannedQueries,
) -> EngineRun:
    """Score every training row with one engine."""
    config = session.config
    with counted(session.progress, f"Scoring with {name}") as report:
        scores = score(
            index,
            Queries(index=queries.index, combination=queries.plan.combination),
            engine,
            loss_reduction=config.grads.loss_reduction,
            normalization=config.grads.normalization,
            memory_limit_mb=config.engine.memory_limit_mb,
            learning_rate=last_learning_rate(session.run),
            owner=session.registry.engines[name].owner,
            progress=report,
        )
    return EngineRun(
        name=name, scores=scores, total=scores.aggregate(config.evaluation.aggregation)
    )


def last_learning_rate(run: RunArtifact | None) -> float | None:
    """Return the last learning rate in the log that is not zero.

    A schedule that ends at zero logs a zero for its last step, which scales every score away.
    """
    if run is None or run.log is None:
        return None
    rates = [record.get("learning_rate") for record in run.log.records]
    known = [float(r) for r in rates if isinstance(r, int | float) and 0 < r < math.inf]
    return known[-1] if known else None
