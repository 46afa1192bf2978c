"""The token at which two answers part."""

from __future__ import annotations

import numpy as np

from gradian_core.attribution.query_rows import Row

__all__ = ["ALIKE", "part"]

ALIKE = "both answers are the same tokens"
NOT_IN_ANSWER = "they part before the answer begins"
CUT = "they part where one of them was cut off, or where the tokenizer has no token for an end"


def part(correct: Row, said: Row) -> tuple[Row, Row] | str:
    """Return both rows up to the first token that they do not share, their only target.

    Where one answer is the beginning of the other, that token is the end of the shorter one's
    turn on one side. It is tokens that are compared and not characters: ``Paris`` and ``Parma``
    part after ``Par`` for one tokenizer and before it for another.

    Parameters
    ----------
    correct, said
        Two answers behind the same prompt.

    Returns
    -------
    tuple of Row, or str
        Why they do not part at a token of both answers, as a clause.
    """
    shared = min(len(correct.ids), len(said.ids))
    different = np.flatnonzero(correct.ids[:shared] != said.ids[:shared])
    if not different.size:
        same = len(correct.ids) == len(said.ids)
        return ALIKE if same else CUT
    place = int(different[0])
    if not (correct.supervised[place] and said.supervised[place]):
        begun = correct.supervised[:place].any() and said.supervised[:place].any()
        return CUT if begun else NOT_IN_ANSWER
    return correct.only(place), said.only(place)
