"""The queries of a run: which rows, as which tokens, under each signal that is asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradian_core.attribution.query import (
    FALLBACK_ROWS,
    QueryPlan,
    plan_queries,
    plan_without_target,
    without,
)
from gradian_core.data.encode import Encoded, encode
from gradian_core.errors import CannotRunError
from gradian_core.evaluation.result import CapabilityResult
from gradian_core.flows.session import Session
from gradian_core.protocols import QueryItem, QueryRows
from gradian_core.specs import MetricSpec

__all__ = ["PlannedQueries", "QueryPlanner"]

_NO_LIMIT = 1 << 20
"""Queries are not truncated: the evaluation has already refused what does not fit."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedQueries:
    """Queries as tokens, with the plan that they follow.

    Parameters
    ----------
    plan
        Which rows, and how they combine.
    encoded
        The plan's rows as tokens.
    notes
        What was left out, as sentences.
    """

    plan: QueryPlan
    encoded: Encoded
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> QueryRows:
        """Tokens and weights."""
        return QueryRows(tokens=self.encoded.tokens, weights=self.plan.combination)


class QueryPlanner:
    """Plans the queries of one run, once for each signal.

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
    """

    def __init__(
        self,
        session: Session,
        measured: CapabilityResult | None,
        spec: MetricSpec,
        training: Encoded,
    ) -> None:
        self._session = session
        self._measured = measured
        self._spec = spec
        self._training = training
        self._planned: dict[str, PlannedQueries] = {}

    def plan(self, signal: str | None = None) -> PlannedQueries:
        """Plan the queries under a signal; None for the configured one.

        Raises
        ------
        UsageError
            If the metric does not allow the signal.
        CannotRunError
            If no query has a supervised token, or some have one only under another signal.
        """
        configured = self._session.config.evaluation.query_signal
        wanted = configured if signal is None or self._measured is None else signal
        if wanted not in self._planned:
            self._planned[wanted] = self._plan(wanted)
        planned = self._planned[wanted]
        if wanted != configured and planned.plan.items != self.plan().plan.items:
            raise CannotRunError(
                f"Not every query can have the signal {wanted}: an answer has no supervised token.",
                hint="Look at the answers in the eval data.",
            )
        return planned

    def items(self) -> tuple[QueryItem, ...]:
        """Return the items behind the queries."""
        plan = self.plan().plan
        if self._measured is None or self._session.eval_dataset is None:
            return tuple(
                QueryItem(
                    example=example,
                    prompt="\n".join(turn.content for turn in example.prompt),
                    reference=example.answer or example.full_text,
                )
                for example in plan.examples
            )
        outcomes = [(i, self._measured.items[i]) for i in plan.items]
        return tuple(
            QueryItem(
                example=self._session.eval_dataset[i],
                prompt=item.prompt,
                reference=item.reference,
                base_output=item.base_output,
                tuned_output=item.tuned_output,
            )
            for i, item in outcomes
        )

    def _plan(self, signal: str) -> PlannedQueries:
        measured, data = self._measured, self._session.eval_dataset
        if measured is None or data is None:
            usable = np.flatnonzero(self._training.tokens.supervised_counts)[:FALLBACK_ROWS]
            plan = plan_without_target([self._session.dataset[i] for i in usable.tolist()])
            limit = self._session.config.grads.max_seq_length
        else:
            plan = plan_queries(measured, data, self._spec, signal)
            limit = _NO_LIMIT
        encoded = self._encode(plan, limit)
        unusable = np.flatnonzero(encoded.tokens.supervised_counts == 0)
        if not unusable.size:
            return PlannedQueries(plan=plan, encoded=encoded)
        before = len(plan.combination)
        plan = without(plan, unusable.tolist())
        lost = before - len(plan.combination)
        if not len(plan.combination):
            raise CannotRunError(
                "No query has a token that can be supervised, so there is nothing to attribute.",
                hint="Look at the answers in the eval data.",
            )
        note = f"{lost} of {before} queries were left out: an answer has no supervised token."
        return PlannedQueries(plan=plan, encoded=self._encode(plan, limit), notes=(note,))

    def _encode(self, plan: QueryPlan, limit: int) -> Encoded:
        return encode(
            plan.examples, self._session.tokenizer, max_seq_length=limit, supervise="last"
        )
