"""Training rows with the loss mask of attribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from gradian_core.data.encode import encode
from gradian_core.data.files import dataset_from_rows
from gradian_core.data.tokens import TokenizedRows
from gradian_core.errors import InputError
from gradian_core.index.address import tokens_digest
from gradian_core.protocols import TrainJob

__all__ = ["IGNORE", "MaskedRows", "PadRight", "encode_rows"]

IGNORE = -100
"""Label of a token without loss, as transformers has it."""


class MaskedRows(torch.utils.data.Dataset[dict[str, list[int]]]):
    """Rows that have a target, as token ids and labels.

    Parameters
    ----------
    tokens
        All rows.
    order
        Places of the rows to visit; None for each row once, in order.
    """

    def __init__(self, tokens: TokenizedRows, order: Sequence[int] | None = None) -> None:
        self.tokens = tokens
        usable = tokens.supervised_counts > 0
        visits = np.arange(len(tokens)) if order is None else np.asarray(order, dtype=np.int64)
        self.kept = visits[usable[visits]]
        self.fingerprint = tokens_digest(tokens, self.kept.tolist())
        """What the record of the run names the data by: tokens and mask, in order."""

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, place: int) -> dict[str, list[int]]:
        ids, mask = self.tokens.row(int(self.kept[place]))
        return {"input_ids": ids.tolist(), "labels": np.where(mask, ids, IGNORE).tolist()}


class PadRight:
    """Collate rows to the longest of them.

    Parameters
    ----------
    pad_token_id
        Any valid token; it is masked.
    """

    def __init__(self, pad_token_id: int) -> None:
        self._pad = pad_token_id

    def __call__(self, rows: Sequence[dict[str, list[int]]]) -> dict[str, Any]:
        """Return ``(len(rows), T)`` int64 tensors."""
        width = max(len(row["input_ids"]) for row in rows)

        def padded(name: str, fill: int) -> torch.Tensor:
            return torch.tensor([row[name] + [fill] * (width - len(row[name])) for row in rows])

        return {
            "input_ids": padded("input_ids", self._pad),
            "labels": padded("labels", IGNORE),
            "attention_mask": torch.tensor(
                [[1] * (n := len(row["input_ids"])) + [0] * (width - n) for row in rows]
            ),
        }


def encode_rows(job: TrainJob, tokenizer: Any, max_seq_length: int) -> MaskedRows:
    """Tokenise the rows of a job as attribution does.

    Raises
    ------
    InputError
        If no row has a supervised token.
    """
    tokens = encode(
        dataset_from_rows(job.rows), tokenizer, max_seq_length=max_seq_length, supervise="all"
    ).tokens
    rows = MaskedRows(tokens, job.order)
    if not len(rows):
        raise InputError(
            f"None of the {len(tokens)} training rows has a supervised token.",
            hint="Check the prompt and answer fields, the chat template and train.max_seq_length.",
        )
    return rows
