"""Rows as tokens, with the loss mask: what training and attribution both differentiate."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Supervision", "TokenizedRows"]


class Supervision(enum.IntEnum):
    """How the supervised tokens of a row were found."""

    MARKERS = 0
    """By the chat template's ``{% generation %}`` markers."""
    PREFIX = 1
    """By rendering the conversation up to each assistant turn (stable prefixes)."""
    WHOLE = 2
    """The whole sequence: raw text, or a tokenizer without a chat template."""
    PROMPT = 3
    """Prompt and answer joined as plain text (no chat template), the answer supervised."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenizedRows:
    """All rows of a data set, tokenised once.

    Arrays are flat, so that a million rows cost no Python objects; row *i* lies at
    ``offsets[i]:offsets[i + 1]``.

    Parameters
    ----------
    ids
        Example ids, one a row.
    rows
        ``(n,)`` int64: row numbers in the file.
    input_ids
        Flat int32 token ids, truncated to the sequence length.
    supervised
        Flat bool: True where the token is a target of the loss. The first token of a row is
        never a target, because nothing precedes it.
    offsets
        ``(n + 1,)`` int64.
    full_lengths
        ``(n,)`` int32: length of each row before truncation.
    full_supervised
        ``(n,)`` int32: supervised tokens of each row before truncation.
    supervision
        ``(n,)`` uint8: a :class:`Supervision` for each row.
    """

    ids: tuple[str, ...]
    rows: NDArray[np.int64]
    input_ids: NDArray[np.int32]
    supervised: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    full_lengths: NDArray[np.int32]
    full_supervised: NDArray[np.int32]
    supervision: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.ids)

    def row(self, index: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return ``(input_ids, supervised)`` of one row, as views."""
        span = slice(int(self.offsets[index]), int(self.offsets[index + 1]))
        return self.input_ids[span], self.supervised[span]

    def take(self, places: NDArray[np.int64]) -> TokenizedRows:
        """Return some rows, in the given order."""
        lengths = self.lengths[places]
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        # of each token taken: its place in its row, moved to where that row starts here
        flat = np.arange(offsets[-1]) + np.repeat(self.offsets[places] - offsets[:-1], lengths)
        return TokenizedRows(
            ids=tuple(self.ids[place] for place in places.tolist()),
            rows=self.rows[places],
            input_ids=self.input_ids[flat],
            supervised=self.supervised[flat],
            offsets=offsets,
            full_lengths=self.full_lengths[places],
            full_supervised=self.full_supervised[places],
            supervision=self.supervision[places],
        )

    @property
    def lengths(self) -> NDArray[np.int64]:
        """``(n,)`` tokens of each row after truncation."""
        return np.diff(self.offsets)

    @property
    def supervised_counts(self) -> NDArray[np.int64]:
        """``(n,)`` supervised tokens of each row after truncation."""
        totals = np.concatenate(([0], np.cumsum(self.supervised, dtype=np.int64)))
        return totals[self.offsets[1:]] - totals[self.offsets[:-1]]
