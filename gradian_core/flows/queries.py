"""The queries of a run: which rows, as which tokens, under each signal that is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gradian_core.attribution.query import (
    FALLBACK_ROWS,
    QueryPlan,
    measured_uptake,
    plan_queries,
    plan_without_target,
)
from gradian_core.attribution.uptake import Uptake
from gradian_core.data.encode import Encoded
from gradian_core.evaluation.result import CapabilityResult
from gradian_core.flows.session import Session
from gradian_core.protocols import QueryItem, QueryRows
from gradian_core.specs import MetricSpec

__all__ = ["PlannedQueries", "QueryPlanner"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedQueries:
    """Queries as tokens, with the plan that they follow.

    Parameters
    ----------
    plan
        Which rows, and how they combine.
    """

    plan: QueryPlan

    @property
    def encoded(self) -> Encoded:
        """The plan's rows as tokens; what could not be done is in the plan's notes."""
        return Encoded(tokens=self.plan.tokens, problems={}, notes=())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out or replaced, as sentences."""
        return self.plan.notes

    @property
    def rows(self) -> QueryRows:
        """Tokens and weights."""
        return QueryRows(tokens=self.plan.tokens, weights=self.plan.combination)


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

    @cached_property
    def uptake(self) -> Uptake | None:
        """Whether training rows teach what the tuned model now says; None if there is nothing."""
        if self._measured is None:
            return None
        positive = self._session.config.evaluation.positive
        return measured_uptake(self._measured, self._spec, positive, self._session.dataset)

    def plan(self, signal: str | None = None) -> PlannedQueries:
        """Plan the queries under a signal; None for the configured one.

        Every signal has the same queries.

        Raises
        ------
        UsageError
            If there is no such signal.
        CannotRunError
            If no query has a supervised token.
        """
        configured = self._session.config.evaluation.query_signal
        wanted = configured if signal is None or self._measured is None else signal
        if wanted not in self._planned:
            self._planned[wanted] = self._plan(wanted)
        return self._planned[wanted]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out or replaced under any signal that was asked for, as sentences."""
        return tuple(note for planned in self._planned.values() for note in planned.notes)

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
                for example in plan.stand_ins
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
        config = self._session.config
        if measured is None or data is None:
            usable = np.flatnonzero(self._training.tokens.supervised_counts)[:FALLBACK_ROWS]
            plan = plan_without_target(
                [self._session.dataset[i] for i in usable.tolist()],
                self._session.tokenizer,
                config.grads.max_seq_length,
            )
        else:
            plan = plan_queries(
                measured,
                data,
                self._spec,
                self._session.tokenizer,
                signal=signal,
                positive=config.evaluation.positive,
                uptake=self.uptake,
            )
        return PlannedQueries(plan=plan)
