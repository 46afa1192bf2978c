"""What a capture of per-example gradients takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch

__all__ = ["Batch", "BatchGradients", "Block", "Capture"]


@dataclass(frozen=True, slots=True)
class Block:
    """One block of the gradient: a LoRA module (A and B together) or one LoRA matrix.

    Parameters
    ----------
    name
        Short name, such as ``model.layers.0.mlp.down_proj`` (``….lora_A`` for a matrix block).
    parameters
        Full names of the model's parameters in it, in the order in which they are concatenated.
    shapes
        Shape of each of them.
    """

    name: str
    parameters: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def dim(self) -> int:
        """Number of components of the exact gradient."""
        total = 0
        for shape in self.shapes:
            size = 1
            for side in shape:
                size *= side
            total += size
        return total


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded rows on the model's device.

    Parameters
    ----------
    input_ids
        ``(B, T)`` int64.
    attention_mask
        ``(B, T)`` int64, 0 at padding.
    supervised
        ``(B, T)`` bool: targets of the loss; never at padding, never the first token of a row.
    """

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    supervised: torch.Tensor


@dataclass(frozen=True, slots=True)
class BatchGradients:
    """Per-example gradients of the mean loss over each example's supervised tokens.

    Parameters
    ----------
    losses
        ``(B,)`` mean loss in nats for each supervised token.
    blocks
        ``(B, dim)`` gradient of each block by name, in float32 (float64 for a float64 model).
    """

    losses: torch.Tensor
    blocks: dict[str, torch.Tensor]


class Capture(Protocol):
    """A strategy that gives per-example gradients."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that it captures."""

    def __call__(self, batch: Batch) -> BatchGradients:
        """Run one forward and backward pass."""
