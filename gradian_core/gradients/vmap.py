"""Per-example gradients by ``torch.func.vmap``: opt-in, for cross-checking.

Forward passes of transformers are not written to be vectorised: a branch on data fails. The mask
is therefore built here, in its four-dimensional form that models pass through as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gradian_core.errors import CannotRunError
from gradian_core.gradients.blocks import assemble
from gradian_core.gradients.types import Batch, BatchGradients, Block
from gradian_core.model.sites import Site

__all__ = ["VmapCapture"]


class VmapCapture:
    """The ``vmap`` strategy; parameters as of ``HooksCapture``.

    Raises
    ------
    CannotRunError
        With gradient checkpointing, for a sliding window shorter than the rows, or if the model's
        forward pass cannot be vectorised.
    """

    def __init__(
        self,
        model: Any,
        sites: Sequence[Site],
        blocks: tuple[Block, ...],
        *,
        gradient_checkpointing: bool = False,
    ) -> None:
        if gradient_checkpointing:
            raise CannotRunError(
                "grads.strategy vmap cannot be combined with gradient checkpointing.",
                hint="Use grads.strategy: hooks.",
            )
        self.model = model
        self.blocks = blocks
        self._tensors = {name: tensor for site in sites for name, tensor in site.parameters}
        self._shapes = {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}

    def __call__(self, batch: Batch) -> BatchGradients:
        """Return losses and per-example gradients of one batch."""
        window = getattr(self.model.config, "sliding_window", None)
        if window is not None and batch.input_ids.shape[1] > window:
            raise CannotRunError(
                f"grads.strategy vmap cannot express a sliding window of {window} tokens.",
                hint="Use grads.strategy: hooks.",
            )
        dtype = next(iter(self._tensors.values())).dtype
        model_dtype = self.model.get_input_embeddings().weight.dtype
        mask = _causal_mask(batch, model_dtype)
        positions = (batch.attention_mask.cumsum(dim=1) - 1).clamp_min(0)
        targets = batch.input_ids[:, 1:]
        weights = batch.supervised[:, 1:].to(dtype)
        weights = weights / weights.sum(dim=1, keepdim=True)
        tensors = {name: tensor.detach() for name, tensor in self._tensors.items()}

        def loss(
            parameters: dict[str, torch.Tensor], ids: torch.Tensor, *rest: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            own_mask, own_positions, own_targets, own_weights = rest
            output = torch.func.functional_call(
                self.model,
                parameters,
                (),
                {
                    "input_ids": ids.unsqueeze(0),
                    "attention_mask": own_mask.unsqueeze(0),
                    "position_ids": own_positions.unsqueeze(0),
                    "use_cache": False,
                },
            )
            logits = output.logits[0, :-1]
            exact = logits if logits.dtype == torch.float64 else logits.float()
            losses = torch.nn.functional.cross_entropy(exact, own_targets, reduction="none")
            total = (losses * own_weights).sum()
            return total, total.detach()

        per_example = torch.func.vmap(
            torch.func.grad(loss, has_aux=True), in_dims=(None, 0, 0, 0, 0, 0)
        )
        try:
            gradients, losses = per_example(
                tensors, batch.input_ids, mask, positions, targets, weights
            )
        except RuntimeError as error:
            if isinstance(error, torch.OutOfMemoryError):
                raise
            reason = str(error).strip().splitlines()[0][:200]
            raise CannotRunError(
                f"This model's forward pass cannot be vectorised by vmap: {reason}",
                hint="Use grads.strategy: hooks.",
            ) from error
        size = batch.input_ids.shape[0]
        return BatchGradients(
            losses.detach(), assemble(self.blocks, gradients, self._shapes, size, losses)
        )


def _causal_mask(batch: Batch, dtype: torch.dtype) -> torch.Tensor:
    """Return the additive ``(B, 1, T, T)`` mask: 0 where a query may look, else the minimum."""
    width = batch.input_ids.shape[1]
    device = batch.input_ids.device
    causal = torch.ones((width, width), dtype=torch.bool, device=device).tril()
    visible = causal.unsqueeze(0) & batch.attention_mask.bool().unsqueeze(1)
    minimum = torch.finfo(dtype).min
    mask = torch.full(visible.shape, minimum, dtype=dtype, device=device)
    return mask.masked_fill(visible, 0.0).unsqueeze(1)
