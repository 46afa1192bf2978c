"""Per-example gradients by plain autograd, one example at a time: the reference.

It differentiates the parameters themselves, so it is exact for every kind of LoRA that PEFT can
run, at the price of one pass an example.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch

from gradian_core.gradients.blocks import assemble, checkpointing
from gradian_core.gradients.loss import example_losses
from gradian_core.gradients.types import Batch, BatchGradients, Block
from gradian_core.model.sites import Site

__all__ = ["LoopCapture"]


class LoopCapture:
    """The reference strategy; parameters as of ``HooksCapture``."""

    def __init__(
        self,
        model: Any,
        sites: Sequence[Site],
        blocks: tuple[Block, ...],
        *,
        gradient_checkpointing: bool = False,
    ) -> None:
        self.model = model
        self.blocks = blocks
        self._checkpointing = gradient_checkpointing
        self._tensors = {name: tensor for site in sites for name, tensor in site.parameters}
        self._shapes = {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}

    def __call__(self, batch: Batch) -> BatchGradients:
        """Return losses and per-example gradients of one batch."""
        losses: list[torch.Tensor] = []
        rows: list[dict[str, torch.Tensor]] = []
        with ExitStack() as stack:
            wanted = {id(tensor) for tensor in self._tensors.values()}
            for parameter in self.model.parameters():
                if parameter.requires_grad != (id(parameter) in wanted):
                    stack.callback(parameter.requires_grad_, parameter.requires_grad)
                    parameter.requires_grad_(id(parameter) in wanted)
            stack.enter_context(torch.enable_grad())
            stack.enter_context(checkpointing(self.model, on=self._checkpointing))
            for i in range(batch.input_ids.shape[0]):
                loss = example_losses(self.model, _alone(batch, i))
                gradients = torch.autograd.grad(
                    loss.sum(), list(self._tensors.values()), allow_unused=True
                )
                losses.append(loss.detach())
                rows.append(
                    {
                        name: gradient.unsqueeze(0)
                        for name, gradient in zip(self._tensors, gradients, strict=True)
                        if gradient is not None
                    }
                )
        parts = [
            assemble(self.blocks, row, self._shapes, 1, loss)
            for row, loss in zip(rows, losses, strict=True)
        ]
        return BatchGradients(
            torch.cat(losses),
            {block.name: torch.cat([part[block.name] for part in parts]) for block in self.blocks},
        )


def _alone(batch: Batch, row: int) -> Batch:
    """Return one row without its padding."""
    keep = batch.attention_mask[row].nonzero().squeeze(1)
    return Batch(
        batch.input_ids[row, keep].unsqueeze(0),
        batch.attention_mask[row, keep].unsqueeze(0),
        batch.supervised[row, keep].unsqueeze(0),
    )
