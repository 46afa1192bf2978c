"""One training row against one eval item, piece by piece."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gradian_core.attribution.point import Point, Queries
from gradian_core.attribution.query import QueryPlan, plan_queries
from gradian_core.attribution.query_rows import Row, rows_of, tokenized
from gradian_core.attribution.spans import Span, token_spans
from gradian_core.config.models import Config
from gradian_core.data.encode import Encoded
from gradian_core.data.tokens import TokenizedRows
from gradian_core.errors import InputError, UsageError
from gradian_core.evaluation.result import CapabilityResult, ItemOutcome
from gradian_core.flows.evaluate import measure_capability
from gradian_core.flows.index import encode_training_data, open_or_build
from gradian_core.flows.queries import QueryPlanner
from gradian_core.flows.session import Session
from gradian_core.index.address import tokens_digest
from gradian_core.index.reader import GradientIndex
from gradian_core.progress import NoProgress, Progress
from gradian_core.specs import MetricSpec

__all__ = ["Explanation", "SpanScore", "explain_example"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanScore:
    """A piece of a training row's answer.

    Parameters
    ----------
    text
        What it says.
    kind
        ``field``, ``line`` or ``sentence``.
    tokens
        Its targets.
    score
        Its part of the row's score: the pieces add up to it. Sign as in
        :mod:`gradian_core.protocols`.
    """

    text: str
    kind: str
    tokens: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What the pieces of one row did to one eval item.

    Parameters
    ----------
    example_id
        The training row.
    prompt
        Its prompt, as text.
    item
        The eval item.
    signal
        The query signal.
    adapter_scale
        Where gradients were taken.
    spans
        The pieces in order.
    notes
        What was guessed or degraded, as sentences.
    """

    example_id: str
    prompt: str
    item: ItemOutcome
    signal: str
    adapter_scale: float
    spans: tuple[SpanScore, ...]
    notes: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """Score of the whole row: gradient dot product with this one item."""
        return sum(span.score for span in self.spans)

    @property
    def worst(self) -> SpanScore:
        """The most harmful piece."""
        return min(self.spans, key=lambda span: span.score)


def explain_example(
    config: Config,
    example: str,
    item: int | str,
    *,
    adapter_scale: float = 1.0,
    progress: Progress | None = None,
) -> Explanation:
    """Score the pieces of one training row's answer against one eval item.

    The pieces are fields of JSON, lines or sentences. Tokens stay as they are and only the loss
    mask varies; scores are gradient dot products (no curvature), which add up over pieces.

    Parameters
    ----------
    config
        That of the attribution.
    example
        Id of a training row, as in ``scores.csv``, or its hash alone where that is unique.
    item
        An eval item: its place in the file from 0, or its id.
    adapter_scale
        Where gradients are taken: 1 is the adapter, lower is nearer to the base model, where rows
        that the adapter has learned by heart still have a gradient.
    progress
        Where to report; silent if None.

    Raises
    ------
    UsageError
        If there is no such row or item.
    InputError
        If the row has no target.
    """
    session = Session(config, progress or NoProgress())
    if session.eval_dataset is None:
        raise UsageError(
            "An explanation needs the eval data.", hint="Pass --eval-dataset, or set eval_dataset."
        )
    registry, name = session.registry, config.evaluation.metric
    spec = registry.find("metric", name).spec
    place = _row(example, [row.id for row in session.dataset])
    encoded = encode_training_data(session)
    measured = measure_capability(session, registry.create("metric", name), spec, name="capability")
    number = _item(item, [outcome.id for outcome in measured.items])
    plan = _plan(session, measured, spec, encoded, number)
    row = rows_of(encoded.tokens.take(np.array([place])))[0]
    spans = token_spans(session.tokenizer, row.ids, row.supervised)
    if not spans:
        raise InputError(
            f"Row {row.id} has no supervised token, so it has no gradient.",
            hint="Choose a row that has a score.",
        )
    scores = _scores(session, plan, row, spans, adapter_scale)
    return Explanation(
        example_id=session.dataset[place].id,
        prompt="\n".join(turn.content for turn in session.dataset[place].prompt),
        item=measured.items[number],
        signal=plan.signal,
        adapter_scale=adapter_scale,
        spans=tuple(
            SpanScore(
                text=span.text, kind=span.kind, tokens=int(span.mask.sum()), score=float(score)
            )
            for span, score in zip(spans, scores, strict=True)
        ),
        notes=plan.notes,
    )


def _plan(
    session: Session,
    measured: CapabilityResult,
    spec: MetricSpec,
    encoded: Encoded,
    number: int,
) -> QueryPlan:
    """Plan the query of one item, under the signal that the whole run has."""
    assert session.eval_dataset is not None
    planner = QueryPlanner(session, measured, spec, encoded)
    return plan_queries(
        replace(measured, items=(measured.items[number],)),
        [session.eval_dataset[number]],
        spec,
        session.tokenizer,
        signal=planner.plan().plan.signal,
        positive=session.config.evaluation.positive,
        uptake=planner.uptake,
    )


def _scores(
    session: Session, plan: QueryPlan, row: Row, spans: list[Span], adapter_scale: float
) -> NDArray[np.float64]:
    def gradients(tokens: TokenizedRows, room: str, what: str) -> GradientIndex:
        return open_or_build(
            session,
            Encoded(tokens=tokens, problems={}, notes=()),
            session.inputs(dataset=tokens_digest(tokens), adapter_scale=adapter_scale),
            session.cache / room,
            description=what,
            provenance={"row": row.id},
        )

    index = gradients(
        tokenized([row.masked(span.mask) for span in spans]), "spans", "Gradients of pieces"
    )
    queries = gradients(plan.tokens, "queries", "Query gradients")
    reduction = session.config.grads.loss_reduction
    point = Point(
        index,
        Queries(index=queries, combination=plan.combination),
        loss_reduction=reduction,
    )
    total = np.zeros(len(spans))
    for block, vectors in point.blocks():
        for rows, found in block.chunks():
            total[index.row_numbers[rows]] += found @ vectors[0]
    if reduction == "mean":
        # each piece counts in the row's mean loss as much as it has targets
        total *= np.array([span.mask.sum() for span in spans]) / row.supervised.sum()
    return total


def _row(wanted: str, ids: list[str]) -> int:
    hits = [i for i, name in enumerate(ids) if name == wanted or name.partition("-")[0] == wanted]
    if not hits:
        raise UsageError(f"There is no training row {wanted}.", hint="Give an id as in scores.csv.")
    return hits[0]


def _item(wanted: int | str, ids: list[str]) -> int:
    text = str(wanted)
    if text.isdecimal() and int(text) < len(ids):
        return int(text)
    if text in ids:
        return ids.index(text)
    raise UsageError(
        f"There is no eval item {text}.",
        hint=f"Give its place in the eval file, from 0 to {len(ids) - 1}, or its id.",
    )
