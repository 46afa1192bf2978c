"""What was lost, as rows whose gradients can be taken.

A query is one eval item that got worse (any item, where none did). It is the gradient of

* ``target``: the loss on the correct answer;
* ``contrastive``: that, minus the loss on what the tuned model said;
* ``divergence``: the loss on the first token at which these two part, minus the loss on the
  tuned model's own, both behind what they share. No other token has a say, so neither length nor
  form of an answer has.

Every signal has the same queries in the same order; an item that cannot have a signal keeps
``target``. How the scores of queries become one is a later, named choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradian_core.attribution.divergence import part
from gradian_core.attribution.positives import correct_answer, encode_answers, tuned_answer
from gradian_core.attribution.query_rows import Row, rows_of, tokenized
from gradian_core.attribution.signals import Signal, choose_signal
from gradian_core.attribution.uptake import Uptake, WrongAnswer, find_uptake
from gradian_core.data.encode import encode
from gradian_core.data.example import Example
from gradian_core.data.tokens import TokenizedRows
from gradian_core.errors import CannotRunError
from gradian_core.evaluation.result import CapabilityResult
from gradian_core.specs import MetricSpec

__all__ = [
    "FALLBACK_ROWS",
    "Positive",
    "QueryPlan",
    "measured_uptake",
    "plan_queries",
    "plan_without_target",
]

FALLBACK_ROWS = 8
"""Training rows that stand in for a query where there is no eval set."""

Positive = Literal["base", "reference"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryPlan:
    """The rows to differentiate, and how they combine to queries.

    Parameters
    ----------
    signal
        ``contrastive``, ``target`` or ``divergence``.
    why
        Why this signal, as a sentence.
    items
        Positions of the eval items that the queries stand for, one a query. Empty where training
        rows stand in.
    tokens
        The rows: a correct answer for each query, then what was said instead.
    combination
        ``(q, len(tokens))`` weights: +1 for a correct answer, -1 for what was said.
    n_given
        Queries whose correct answer is the completion in the eval file.
    n_target
        Queries that keep ``target`` under another signal.
    stand_ins
        Training rows that stand in for eval items, one a query.
    notes
        What was left out or replaced, as sentences.
    """

    signal: Signal
    why: str
    items: tuple[int, ...]
    tokens: TokenizedRows
    combination: NDArray[np.float64]
    n_given: int = 0
    n_target: int = 0
    stand_ins: tuple[Example, ...] = ()
    notes: tuple[str, ...] = ()


def measured_uptake(
    result: CapabilityResult,
    spec: MetricSpec,
    positive: Positive,
    training: Sequence[Example],
) -> Uptake | None:
    """Look for what the tuned model says on the items that got worse in the training rows.

    Positions of wrong answers are places in ``result.flipped``. None where no item got worse, or
    nothing was generated.
    """
    answers = [
        WrongAnswer(item.prompt, correct_answer(item, spec, positive).text, item.tuned_output)
        for item in (result.items[i] for i in result.flipped)
        if item.tuned_output is not None
    ]
    return find_uptake(answers, training)


def plan_queries(
    result: CapabilityResult,
    eval_examples: Sequence[Example],
    spec: MetricSpec,
    tokenizer: Any,
    *,
    signal: str,
    positive: Positive,
    uptake: Uptake | None,
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
    tokenizer
        The tokenizer of the run.
    signal, positive
        The settings ``evaluation.query_signal`` and ``evaluation.positive``.
    uptake
        Of the items that got worse; what ``auto`` decides by.

    Raises
    ------
    UsageError
        If there is no such signal.
    CannotRunError
        If no correct answer has a token that can be supervised.
    """
    chosen, why = choose_signal(signal, result, uptake)
    items = result.flipped or tuple(range(len(result.items)))
    answers = [correct_answer(result.items[i], spec, positive) for i in items]
    rows, encoded = encode_answers([eval_examples[i] for i in items], answers, tokenizer)
    keep = [place for place, row in enumerate(rows) if row.usable]
    if not keep:
        raise CannotRunError(
            "No query has a token that can be supervised, so there is nothing to attribute.",
            hint="Look at the answers in the eval data.",
        )
    notes = list(encoded.notes)
    if signal in {"contrastive", "divergence"} and chosen == "target":
        notes.append(f"The query signal is target and not {signal}: {why[0].lower()}{why[1:]}")
    if len(keep) < len(rows):
        notes.append(
            f"{len(rows) - len(keep)} of {len(rows)} queries were left out: the correct answer "
            "has no supervised token."
        )
    items = tuple(items[place] for place in keep)
    correct = [rows[place] for place in keep]
    given = sum(answers[place].given for place in keep)
    generated = any(item.base_output is not None for item in result.items)
    if given and positive == "base" and generated:
        notes.append(
            f"{given} of {len(keep)} queries ask for the completion in the eval file: the metric "
            "did not find the base model's own answer fully right."
        )
    pairs: list[tuple[Row, Row | None]] = [(row, None) for row in correct]
    if chosen != "target":
        said, more = _said(result, eval_examples, items, tokenizer)
        notes += more
        pairs, reasons = _pairs(correct, said, chosen)
        notes += [
            f"{n} of {len(keep)} queries keep the signal target instead of {chosen}: {reason}."
            for reason, n in reasons.most_common()
        ]
    tokens, combination = _combined(pairs)
    return QueryPlan(
        signal=chosen,
        why=why,
        items=items,
        tokens=tokens,
        combination=combination,
        n_given=given,
        n_target=0 if chosen == "target" else sum(other is None for _, other in pairs),
        notes=tuple(dict.fromkeys(notes)),
    )


def plan_without_target(training: Sequence[Example], tokenizer: Any, limit: int) -> QueryPlan:
    """Let training rows stand in for a capability: a smoke test, not a diagnosis.

    Parameters
    ----------
    training
        Rows that have a supervised token; the first :data:`FALLBACK_ROWS` are used.
    tokenizer
        The tokenizer of the run.
    limit
        Tokens to which training rows are cut.

    Raises
    ------
    CannotRunError
        If no row has a supervised token within the limit.
    """
    encoded = encode(training[:FALLBACK_ROWS], tokenizer, max_seq_length=limit, supervise="last")
    found = zip(training, rows_of(encoded.tokens), strict=False)
    usable = [(example, row) for example, row in found if row.usable]
    if not usable:
        raise CannotRunError(
            "No query has a token that can be supervised, so there is nothing to attribute.",
            hint="Look at the answers in the training data.",
        )
    lost = len(encoded.tokens) - len(usable)
    note = f"{lost} of the training rows that stand in for the query have no supervised token."
    return QueryPlan(
        signal="target",
        why="There is no eval data set, so the first training rows stand in for it.",
        items=(),
        tokens=tokenized([row for _, row in usable]),
        combination=np.eye(len(usable)),
        stand_ins=tuple(example for example, _ in usable),
        notes=(*encoded.notes, *([note] if lost else [])),
    )


def _said(
    result: CapabilityResult,
    eval_examples: Sequence[Example],
    items: Sequence[int],
    tokenizer: Any,
) -> tuple[list[Row | None], tuple[str, ...]]:
    answers = [tuned_answer(result.items[i]) for i in items]
    there = [place for place, answer in enumerate(answers) if answer is not None]
    rows, encoded = encode_answers(
        [eval_examples[items[place]] for place in there],
        [answer for answer in answers if answer is not None],
        tokenizer,
    )
    said: list[Row | None] = [None] * len(items)
    for place, row in zip(there, rows, strict=True):
        said[place] = row
    return said, encoded.notes


def _pairs(
    correct: Sequence[Row], said: Sequence[Row | None], signal: Signal
) -> tuple[list[tuple[Row, Row | None]], Counter[str]]:
    """Return what each query adds and subtracts, and why some subtract nothing."""
    pairs: list[tuple[Row, Row | None]] = []
    reasons: Counter[str] = Counter()
    for right, wrong in zip(correct, said, strict=True):
        found: tuple[Row, Row] | str
        if wrong is None or not wrong.usable:
            found = "what the tuned model said has no supervised token"
        else:
            found = (right, wrong) if signal == "contrastive" else part(right, wrong)
        if isinstance(found, str):
            reasons[found] += 1
            pairs.append((right, None))
        else:
            pairs.append(found)
    return pairs, reasons


def _combined(
    pairs: Sequence[tuple[Row, Row | None]],
) -> tuple[TokenizedRows, NDArray[np.float64]]:
    subtracting = [(query, wrong) for query, (_, wrong) in enumerate(pairs) if wrong is not None]
    combination = np.zeros((len(pairs), len(pairs) + len(subtracting)))
    combination[:, : len(pairs)] = np.eye(len(pairs))
    for column, (query, _) in enumerate(subtracting, start=len(pairs)):
        combination[query, column] = -1.0
    return tokenized([*(row for row, _ in pairs), *(row for _, row in subtracting)]), combination
