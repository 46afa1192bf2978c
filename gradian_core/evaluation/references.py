"""Measuring by the probability of the reference answers."""

from __future__ import annotations

from typing import Any

from gradian_core.data.encode import Encoded, encode
from gradian_core.data.tokens import TokenizedRows
from gradian_core.errors import InputError
from gradian_core.evaluation.judge import place
from gradian_core.evaluation.likelihood import sequence_logprobs
from gradian_core.evaluation.result import ItemOutcome
from gradian_core.evaluation.stops import UNLIMITED, context_limit
from gradian_core.evaluation.task import EvalTask, outcome

__all__ = ["measure_references"]


def measure_references(task: EvalTask) -> tuple[tuple[ItemOutcome, ...], list[str]]:
    """Let both models read every reference answer; nothing is generated.

    Returns
    -------
    tuple
        The items and notes.

    Raises
    ------
    InputError
        If a row does not fit into the model's context whole, or its answer has no tokens.
    """
    limit = context_limit(task.loaded.model) or UNLIMITED
    encoded = encode(task.examples, task.loaded.tokenizer, max_seq_length=limit, supervise="last")
    _refuse_incomplete(task, encoded, limit)
    with task.loaded.base() as model:
        base = _scores(task, model, encoded.tokens, "base")
    tuned = _scores(task, task.loaded.model, encoded.tokens, "tuned")
    items = tuple(map(outcome, task.examples, base, tuned))
    return items, list(encoded.notes)


def _refuse_incomplete(task: EvalTask, encoded: Encoded, limit: int) -> None:
    for row in encoded.truncated.tolist():
        raise InputError(
            f"{place(task.judge.source, task.examples[row])} has "
            f"{encoded.tokens.full_lengths[row]} tokens, more than the {limit} tokens of the "
            "model's context.",
            hint="Shorten or remove it.",
        )
    for row in encoded.unsupervised.tolist():
        reason = encoded.problems.get(row, "no token of it is a target")
        raise InputError(
            f"The likelihood of the answer in {place(task.judge.source, task.examples[row])} "
            f"cannot be taken: {reason}."
        )


def _scores(task: EvalTask, model: Any, tokens: TokenizedRows, stage: str) -> list[float]:
    logprobs = sequence_logprobs(
        model,
        tokens,
        batch_rows=task.settings.batch_size,
        pad_token_id=task.loaded.pad_token_id,
        device=task.loaded.device,
        progress=task.counter(stage),
    )
    return list(map(task.judge.likelihood, logprobs, task.examples))
