"""Log-probabilities of answers that are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gradian_core.data.tokens import TokenizedRows
from gradian_core.errors import CannotRunError
from gradian_core.gradients.batching import plan_batches
from gradian_core.gradients.collate import collate
from gradian_core.model.logits import supervised_logits

__all__ = ["sequence_logprobs"]


def sequence_logprobs(
    model: Any,
    tokens: TokenizedRows,
    *,
    batch_rows: int,
    batch_tokens: int = 4096,
    pad_token_id: int,
    device: Any = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> list[NDArray[np.float64]]:
    """Return the log-probability of every supervised token.

    Parameters
    ----------
    model
        A causal language model in eval mode.
    tokens
        The rows.
    batch_rows, batch_tokens
        Most rows, and most tokens with padding, at a time.
    pad_token_id
        Any valid token; it is masked.
    device
        Where the model lies.
    progress
        Called after each batch with the number of rows done and of all.

    Returns
    -------
    list of numpy.ndarray
        For each row, ``(t,)`` float64 in nats, in the order of its supervised tokens. The
        softmax is taken in float32, or in float64 for a float64 model.

    Raises
    ------
    CannotRunError
        If memory does not suffice or the model gives NaN.
    """
    lengths = tokens.lengths
    order = np.argsort(-lengths, kind="stable")
    found: list[NDArray[np.float64]] = [np.empty(0)] * len(tokens)
    done = 0
    for part in plan_batches(lengths[order], batch_rows, batch_tokens):
        rows = order[part]
        batch = collate(tokens, rows.tolist(), pad_token_id=pad_token_id, device=device)
        try:
            with torch.no_grad():
                logits, row_index, targets = supervised_logits(model, batch)
                wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
                losses = torch.nn.functional.cross_entropy(
                    wide, targets.to(wide.device), reduction="none"
                )
        except torch.OutOfMemoryError as error:
            raise CannotRunError(
                f"Not enough memory on {device} for {len(rows)} rows of up to "
                f"{int(lengths[rows].max())} tokens at a time.",
                hint="Lower evaluation.batch_size.",
            ) from error
        values = -losses.cpu().numpy().astype(np.float64)
        if np.isnan(values).any():
            raise CannotRunError(
                "The model's log-probabilities are NaN.",
                hint="Set dtype to bfloat16 or float32; if it already is, the weights are damaged.",
            )
        counts = np.bincount(row_index.cpu().numpy(), minlength=len(rows))
        for row, part_values in zip(rows, np.split(values, np.cumsum(counts)[:-1]), strict=True):
            found[row] = part_values
        done += len(rows)
        if progress is not None:
            progress(done, len(tokens))
    return found
