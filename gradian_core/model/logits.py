"""Logits at supervised positions only: what the loss and the likelihoods both need."""

from __future__ import annotations

import inspect
from typing import Any, Protocol

import torch

__all__ = ["supervised_logits"]


class _Batch(Protocol):
    @property
    def input_ids(self) -> torch.Tensor: ...
    @property
    def attention_mask(self) -> torch.Tensor: ...
    @property
    def supervised(self) -> torch.Tensor: ...


def supervised_logits(model: Any, batch: _Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Run the model and return logits for the supervised tokens only.

    The hidden states are gathered by a hook in front of the output embeddings, and the rest of
    the model's own forward pass (soft-capping, scaling) runs on what is left, so memory grows
    with the supervised tokens and not with padding or prompts. All logits are computed, and
    gathered after, where that cannot be done: the output embeddings carry an adapter of their
    own (whose per-example gradients need the batch's shape), or the model does not call them on
    ``(B, T, hidden)`` states. The numbers are the same either way, as are gradients.

    Parameters
    ----------
    model
        A causal language model.
    batch
        ``(B, T)`` tensors. Padding may be on either side: position ids count attended tokens.

    Returns
    -------
    logits
        ``(N, V)`` in the model's own type: the logits that predict each supervised token.
    row_index
        ``(N,)`` int64: row of each, ascending.
    targets
        ``(N,)`` int64: the supervised tokens.
    """
    row_index, position = batch.supervised.nonzero(as_tuple=True)
    before = position - 1
    targets = batch.input_ids[row_index, position]
    inputs = _inputs(model, batch)
    head = model.get_output_embeddings()
    if head is None or hasattr(head, "base_layer"):
        return _gathered(model(**inputs).logits, row_index, before), row_index, targets

    called = False

    def gather(_module: Any, args: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
        nonlocal called
        if not args or args[0].shape[:-1] != batch.input_ids.shape:
            return None
        called = True
        return (_gathered(args[0], row_index, before).unsqueeze(0), *args[1:])

    handle = head.register_forward_pre_hook(gather)
    try:
        logits = model(**inputs).logits
    finally:
        handle.remove()
    return logits[0] if called else _gathered(logits, row_index, before), row_index, targets


def _gathered(states: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """``(N, …)`` entries of ``(B, T, …)`` states, which may lie on another device."""
    return states[rows.to(states.device), columns.to(states.device)]


def _inputs(model: Any, batch: _Batch) -> dict[str, Any]:
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    accepted = inspect.signature(base.forward).parameters
    mask = batch.attention_mask
    # models with ALiBi or a recurrent state take no position ids: the mask tells them
    optional = {"position_ids": (mask.cumsum(dim=1) - 1).clamp_min(0), "use_cache": False}
    if bool(mask[:, 0].all()):
        # A causal model never looks at padding on the right. Masked all the same, a padded
        # position beyond a sliding window sees nothing, and in float64 that gives NaN.
        mask = torch.ones_like(mask)
    return {
        "input_ids": batch.input_ids,
        "attention_mask": mask,
        **{name: value for name, value in optional.items() if name in accepted},
    }
