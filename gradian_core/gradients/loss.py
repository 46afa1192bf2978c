"""The loss that is differentiated: the same mask, tokens and reduction as in training."""

from __future__ import annotations

from typing import Any

import torch

from gradian_core.gradients.types import Batch
from gradian_core.model.logits import supervised_logits

__all__ = ["example_losses"]


def example_losses(model: Any, batch: Batch) -> torch.Tensor:
    """Mean cross-entropy of each example over its supervised tokens.

    The loss is computed here from logits, and not by passing ``labels=``: fused cross-entropy
    kernels would swallow the gradients, and a batch mean would mix examples. Logits exist only
    at supervised positions.

    Parameters
    ----------
    model
        A causal language model.
    batch
        Every row has at least one supervised token.

    Returns
    -------
    torch.Tensor
        ``(B,)`` in nats a token, float32 (float64 for a float64 model).
    """
    logits, row_index, targets = supervised_logits(model, batch)
    exact = logits if logits.dtype == torch.float64 else logits.float()
    token_losses = torch.nn.functional.cross_entropy(exact, targets, reduction="none")
    size = batch.input_ids.shape[0]
    counts = batch.supervised.sum(dim=1).to(token_losses.dtype)
    return token_losses.new_zeros(size).index_add(0, row_index, token_losses) / counts
