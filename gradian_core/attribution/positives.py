"""Which answer counts as the correct one, and its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gradian_core.attribution.query_rows import Row, rows_of
from gradian_core.data.encode import Encoded, encode, with_answer
from gradian_core.data.example import Example
from gradian_core.evaluation.result import ItemOutcome
from gradian_core.specs import MetricSpec

__all__ = ["Answer", "correct_answer", "encode_answers", "tuned_answer"]

_NO_LIMIT = 1 << 30
"""Queries are not truncated: the evaluation has already refused what does not fit."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to an eval item.

    Parameters
    ----------
    text
        The answer.
    cut
        Whether generation was stopped at the cap on new tokens: it has no end to be learned.
    given
        Whether it is the completion in the eval file.
    """

    text: str
    cut: bool = False
    given: bool = False


def correct_answer(
    item: ItemOutcome, spec: MetricSpec, prefer: Literal["base", "reference"]
) -> Answer:
    """Return the correct answer that stands for what was lost.

    With ``base`` it is what the base model said, if the metric judged that fully right: it was
    lost in these words. The completion in the eval file may have another form, and its gradient
    is then for the most part about the form. Forbidden markers are no answer at all, so there
    it is always what the base model said.
    """
    if item.base_output is None:
        return Answer(item.reference, given=True)
    if not spec.reference_is_answer or (prefer == "base" and item.base_score == 1.0):
        return Answer(item.base_output, cut=item.base_cut)
    return Answer(item.reference, given=True)


def tuned_answer(item: ItemOutcome) -> Answer | None:
    """Return what the tuned model said; None where nothing was generated."""
    return None if item.tuned_output is None else Answer(item.tuned_output, cut=item.tuned_cut)


def encode_answers(
    examples: Sequence[Example], answers: Sequence[Answer], tokenizer: Any
) -> tuple[list[Row], Encoded]:
    """Tokenise answers behind their prompts.

    What ends an answer (``<|im_end|>``) is no target where the answer was cut: the model did not
    end there.

    Returns
    -------
    rows
        One an answer, its own tokens and the end of its turn being targets.
    encoded
        As it came from the tokenizer, with its notes.
    """
    filled = [with_answer(e, a.text) for e, a in zip(examples, answers, strict=True)]
    encoded = encode(filled, tokenizer, max_seq_length=_NO_LIMIT, supervise="last")
    rows = rows_of(encoded.tokens)
    cut = [i for i, answer in enumerate(answers) if answer.cut]
    if cut:
        empty = encode(
            [with_answer(examples[i], "") for i in cut],
            tokenizer,
            max_seq_length=_NO_LIMIT,
            supervise="last",
        )
        for i, bare in zip(cut, rows_of(empty.tokens), strict=True):
            rows[i] = _without_end(rows[i], bare)
    return rows, encoded


def _without_end(row: Row, empty: Row) -> Row:
    """Take the targets away that an empty answer ends with as well."""
    targets = np.flatnonzero(row.supervised)
    ending = np.flatnonzero(empty.supervised)
    same = 0
    while same < min(len(targets), len(ending)) and (
        row.ids[targets[-1 - same]] == empty.ids[ending[-1 - same]]
    ):
        same += 1
    mask = row.supervised.copy()
    mask[targets[len(targets) - same :]] = False
    return row.masked(mask)
