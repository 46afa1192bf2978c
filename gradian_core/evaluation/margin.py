"""Base preference margin: how firmly the base model held what was lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradian_core.data.encode import encode, with_answer
from gradian_core.data.example import Example
from gradian_core.evaluation.likelihood import sequence_logprobs
from gradian_core.evaluation.stops import UNLIMITED, context_limit
from gradian_core.model.loaded import LoadedModel

__all__ = ["preference_margins"]


def preference_margins(
    loaded: LoadedModel,
    examples: Sequence[Example],
    correct: Sequence[str],
    said: Sequence[str],
    *,
    batch_rows: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[float | None]:
    """Compare two answers to each prompt under the base model.

    Parameters
    ----------
    loaded
        The model.
    examples
        Eval rows.
    correct, said
        The right answer to each, and what the tuned model said.
    batch_rows
        Rows at a time.
    progress
        Called after each batch with the number of answers done and of all.

    Returns
    -------
    list
        log p(correct) − log p(said) in nats: totals over the tokens of the answer and the end of
        its turn. Negative where the base model itself prefers what was said. None where one of
        the two does not fit into the context whole, or has no token at all.
    """
    pairs = [
        with_answer(example, text)
        for example, answers in zip(examples, zip(correct, said, strict=True), strict=True)
        for text in answers
    ]
    if not pairs:
        return []
    limit = context_limit(loaded.model) or UNLIMITED
    tokens = encode(pairs, loaded.tokenizer, max_seq_length=limit, supervise="last").tokens
    with loaded.base() as base:
        logprobs = sequence_logprobs(
            base,
            tokens,
            batch_rows=batch_rows,
            pad_token_id=loaded.pad_token_id,
            device=loaded.device,
            progress=progress,
        )
    whole = (tokens.full_lengths == tokens.lengths) & (tokens.supervised_counts > 0)
    totals = [float(row.sum()) for row in logprobs]
    return [
        totals[i] - totals[i + 1] if whole[i] and whole[i + 1] else None
        for i in range(0, len(pairs), 2)
    ]
