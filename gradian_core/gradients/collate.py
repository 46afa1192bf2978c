"""Rows to padded batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch

from gradian_core.data.tokens import TokenizedRows
from gradian_core.gradients.types import Batch

__all__ = ["collate"]


def collate(
    tokens: TokenizedRows,
    rows: Sequence[int],
    *,
    pad_token_id: int,
    device: Any,
    padding_side: Literal["left", "right"] = "right",
) -> Batch:
    """Pad rows of a data set to the longest of them.

    Parameters
    ----------
    tokens
        The tokenised data set.
    rows
        Positions in ``tokens``.
    pad_token_id
        Any valid token; it is masked.
    device
        Where the tensors go.
    padding_side
        Makes no difference to gradients; ``right`` keeps positions trivial.

    Returns
    -------
    Batch
        ``(len(rows), T)`` tensors.
    """
    taken = [tokens.row(row) for row in rows]
    width = max(len(ids) for ids, _ in taken)
    input_ids = torch.full((len(taken), width), pad_token_id, dtype=torch.int64)
    attention_mask = torch.zeros((len(taken), width), dtype=torch.int64)
    supervised = torch.zeros((len(taken), width), dtype=torch.bool)
    for i, (ids, mask) in enumerate(taken):
        start = width - len(ids) if padding_side == "left" else 0
        span = slice(start, start + len(ids))
        input_ids[i, span] = torch.as_tensor(ids.astype("int64"))
        attention_mask[i, span] = 1
        supervised[i, span] = torch.as_tensor(mask.copy())
    return Batch(input_ids.to(device), attention_mask.to(device), supervised.to(device))
