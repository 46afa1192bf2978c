"""What all capture strategies share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from gradian_core.gradients.types import Block

__all__ = ["assemble", "checkpointing"]


def assemble(
    blocks: Sequence[Block],
    found: Mapping[str, torch.Tensor],
    shapes: Mapping[str, tuple[int, ...]],
    size: int,
    like: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """Concatenate per-example gradients of parameters into blocks.

    Parameters
    ----------
    blocks
        The blocks wanted.
    found
        ``(B, *shape)`` gradients by parameter name. A parameter that took no part in the loss
        is missing and counts as zero.
    shapes
        Shape of each parameter.
    size
        Number of examples *B*.
    like
        A tensor of the wanted device and (at least) precision.

    Returns
    -------
    dict
        Block name -> ``(B, dim)`` in float32, or float64 if ``like`` is.
    """
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    result = {}
    for block in blocks:
        parts = []
        for name in block.parameters:
            part = found.get(name)
            if part is None:
                part = torch.zeros((size, *shapes[name]), dtype=dtype, device=like.device)
            parts.append(part.reshape(size, -1).to(dtype))
        result[block.name] = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
    return result


@contextmanager
def checkpointing(model: Any, *, on: bool) -> Iterator[None]:
    """Switch gradient checkpointing on for the time of a pass, with dropout still off.

    transformers checkpoints only layers that are in training mode, so exactly these modules are
    flagged and none of their children.
    """
    if not on:
        yield
        return
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    with ExitStack() as stack:
        if not any(getattr(module, "gradient_checkpointing", False) for module in base.modules()):
            # transformers renamed both; the old names warn from 5.24 on
            new = hasattr(base, "activation_checkpointing_enable")
            kind = "activation" if new else "gradient"
            getattr(base, f"{kind}_checkpointing_enable")({"use_reentrant": False})
            stack.callback(getattr(base, f"{kind}_checkpointing_disable"))
        for module in base.modules():
            if getattr(module, "gradient_checkpointing", False) and not module.training:
                module.training = True
                stack.callback(setattr, module, "training", False)
        yield
