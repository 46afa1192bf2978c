"""What was lost, as rows whose gradients can be taken.

A query is one eval item that got worse. Its gradient is that of the loss on the correct answer,
minus (``contrastive``) that of the loss on what the tuned model said instead: what a fine-tune
teaches most is the form of an answer, which both share and the difference cancels. The queries
stay one row an item; how their scores become one is a later, named choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradian_core.data.encode import with_answer
from gradian_core.data.example import Example
from gradian_core.errors import UsageError
from gradian_core.evaluation.result import CapabilityResult, ItemOutcome
from gradian_core.specs import MetricSpec

__all__ = [
    "FALLBACK_ROWS",
    "QueryPlan",
    "plan_queries",
    "plan_without_target",
    "refuse_signal",
    "without",
]

FALLBACK_ROWS = 8
"""Training rows that stand in for a query where there is no eval set."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryPlan:
    """The rows to differentiate, and how they combine to queries.

    Parameters
    ----------
    signal
        ``contrastive`` or ``target``.
    why
        Why this signal, as a sentence.
    items
        Positions of the eval items that the queries stand for, one a query. Empty where training
        rows stand in.
    examples
        The rows; the last assistant turn of each is supervised.
    combination
        ``(q, len(examples))`` weights: +1 for a correct answer, -1 for what was said.
    """

    signal: Literal["contrastive", "target"]
    why: str
    items: tuple[int, ...]
    examples: tuple[Example, ...]
    combination: NDArray[np.float64]


def refuse_signal(spec: MetricSpec, signal: str) -> None:
    """Refuse a contrast with a metric that generates no answers; known before any is measured.

    Raises
    ------
    UsageError
        If they do not go together.
    """
    if signal == "contrastive" and spec.needs == "likelihood":
        raise UsageError(
            f"evaluation.query_signal: contrastive needs generated answers, and the metric "
            f"{spec.name} generates none.",
            hint="Use a text metric such as contains, or query_signal: target.",
        )


def plan_queries(
    result: CapabilityResult,
    eval_examples: Sequence[Example],
    spec: MetricSpec,
    signal: str,
) -> QueryPlan:
    """Plan the queries for the items that got worse; for all items where none did.

    Parameters
    ----------
    result
        The measured capability.
    eval_examples
        The eval rows, in the order of its items.
    spec
        The metric: it tells whether the reference is an answer or a list of markers.
    signal
        The setting ``evaluation.query_signal``.

    Raises
    ------
    UsageError
        If a contrast is asked for and nothing was generated to contrast with.
    """
    refuse_signal(spec, signal)
    generated = all(item.tuned_output is not None for item in result.items)
    items = result.flipped or tuple(range(len(result.items)))
    correct = tuple(with_answer(eval_examples[i], _correct(result.items[i], spec)) for i in items)
    q = len(items)
    why_target = (
        "It was asked for."
        if signal == "target"
        else f"The metric {result.metric} generates no answer to contrast with."
        if not generated
        else "No item got worse, so nothing that was said stands against a correct answer."
        if signal == "auto" and not result.flipped
        else None
    )
    if why_target is not None:
        return QueryPlan(
            signal="target", why=why_target, items=items, examples=correct, combination=np.eye(q)
        )
    said = tuple(with_answer(eval_examples[i], result.items[i].tuned_output or "") for i in items)
    return QueryPlan(
        signal="contrastive",
        why=(
            "It was asked for."
            if signal == "contrastive"
            else "There are generated answers to contrast the correct ones with."
        ),
        items=items,
        examples=correct + said,
        combination=np.hstack([np.eye(q), -np.eye(q)]),
    )


def plan_without_target(train_examples: Sequence[Example]) -> QueryPlan:
    """Let the first training rows stand in for a capability: a smoke test, not a diagnosis."""
    chosen = tuple(train_examples[:FALLBACK_ROWS])
    return QueryPlan(
        signal="target",
        why="There is no eval data set, so the first training rows stand in for it.",
        items=(),
        examples=chosen,
        combination=np.eye(len(chosen)),
    )


def without(plan: QueryPlan, unusable: Sequence[int]) -> QueryPlan:
    """Return the plan without the queries that need one of these rows."""
    lost = set(unusable)
    keep_query = [
        not any(row in lost for row in np.flatnonzero(weights)) for weights in plan.combination
    ]
    combination = plan.combination[keep_query]
    keep_row = (combination != 0).any(axis=0)
    return QueryPlan(
        signal=plan.signal,
        why=plan.why,
        items=tuple(item for item, keep in zip(plan.items, keep_query, strict=False) if keep),
        examples=tuple(
            example for example, keep in zip(plan.examples, keep_row, strict=True) if keep
        ),
        combination=combination[:, keep_row],
    )


def _correct(item: ItemOutcome, spec: MetricSpec) -> str:
    # Forbidden markers are no answer; what the base model said instead is a correct one.
    if spec.reference_is_answer or item.base_output is None:
        return item.reference
    return item.base_output
