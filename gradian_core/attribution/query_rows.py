"""Rows of tokens with a loss mask of their own, out of rows that were tokenised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gradian_core.data.tokens import TokenizedRows

__all__ = ["Row", "rows_of", "tokenized"]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One row of a :class:`TokenizedRows`.

    Parameters
    ----------
    id, row
        Of the eval row.
    ids
        ``(t,)`` int32 tokens.
    supervised
        ``(t,)`` bool: targets.
    how
        A :class:`~gradian_core.data.tokens.Supervision`.
    """

    id: str
    row: int
    ids: NDArray[np.int32]
    supervised: NDArray[np.bool_]
    how: int

    @property
    def usable(self) -> bool:
        """Whether it has a target, and so a loss."""
        return bool(self.supervised.any())

    def masked(self, supervised: NDArray[np.bool_]) -> Row:
        """Return it with other targets."""
        return replace(self, supervised=supervised)

    def only(self, place: int) -> Row:
        """Return it up to and with one token, which is the only target."""
        mask = np.zeros(place + 1, np.bool_)
        mask[place] = True
        return replace(self, ids=self.ids[: place + 1], supervised=mask)


def rows_of(tokens: TokenizedRows) -> list[Row]:
    """Take rows apart."""
    return [
        Row(tokens.ids[i], int(tokens.rows[i]), *tokens.row(i), int(tokens.supervision[i]))
        for i in range(len(tokens))
    ]


def tokenized(rows: Sequence[Row]) -> TokenizedRows:
    """Put rows together; they count as whole."""
    lengths = np.array([len(row.ids) for row in rows], np.int64)
    masks = [row.supervised for row in rows]
    return TokenizedRows(
        ids=tuple(row.id for row in rows),
        rows=np.array([row.row for row in rows], np.int64),
        input_ids=np.concatenate([row.ids for row in rows]) if rows else np.zeros(0, np.int32),
        supervised=np.concatenate(masks) if rows else np.zeros(0, np.bool_),
        offsets=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        full_lengths=lengths.astype(np.int32),
        full_supervised=np.array([mask.sum() for mask in masks], np.int32),
        supervision=np.array([row.how for row in rows], np.uint8),
    )
