"""Choosing a capture strategy and proving it on the model at hand before it is used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gradian_core.config.models import GradsSection
from gradian_core.data.tokens import TokenizedRows
from gradian_core.errors import CannotRunError
from gradian_core.gradients.collate import collate
from gradian_core.gradients.hooks import HooksCapture
from gradian_core.gradients.loop import LoopCapture
from gradian_core.gradients.types import Batch, Block, Capture
from gradian_core.gradients.vmap import VmapCapture
from gradian_core.model.loaded import LoadedModel
from gradian_core.model.sites import Site, find_sites, plan_blocks

__all__ = ["make_capture", "verify_capture"]

_STRATEGIES: dict[str, type[HooksCapture | LoopCapture | VmapCapture]] = {
    "hooks": HooksCapture,
    "loop": LoopCapture,
    "vmap": VmapCapture,
}

# A wrong gradient is wrong by order 1; these only have to let rounding pass. Models round to
# float32 inside (norms, softmax, rotation) whatever their own dtype is.
_TOLERANCE = {torch.float64: 1e-4, torch.float32: 1e-3}
_HALF_TOLERANCE = 1e-1


def make_capture(loaded: LoadedModel, settings: GradsSection) -> Capture:
    """Build the capture that the settings ask for.

    Raises
    ------
    InputError, UsageError
        If there is nothing to capture, or the filter matches nothing.
    CannotRunError
        If the strategy cannot capture some LoRA tensor exactly.
    """
    sites, blocks = _plan(loaded, settings)
    strategy = _STRATEGIES[settings.strategy]
    return strategy(
        loaded.model, sites, blocks, gradient_checkpointing=settings.gradient_checkpointing
    )


def _plan(
    loaded: LoadedModel, settings: GradsSection
) -> tuple[tuple[Site, ...], tuple[Block, ...]]:
    assert loaded.adapter is not None
    return plan_blocks(
        find_sites(loaded.model, loaded.adapter),
        granularity=settings.block_granularity,
        module_filter=settings.module_filter,
    )


def verify_capture(
    capture: Capture, loaded: LoadedModel, settings: GradsSection, tokens: TokenizedRows
) -> None:
    """Compare a capture with plain autograd on real rows; stop if they differ.

    Two rows of different length go through it as one padded batch, so a strategy that mixes up
    examples or counts padding is found out.

    Raises
    ------
    CannotRunError
        If a block differs by more than rounding, by name.
    """
    if isinstance(capture, LoopCapture):
        return
    rows = _probe_rows(tokens)
    if not rows:
        return
    batch = collate(tokens, rows, pad_token_id=loaded.pad_token_id, device=loaded.device)
    sites, blocks = _plan(loaded, settings)
    expected = LoopCapture(loaded.model, sites, blocks)(batch).blocks
    _compare(capture, batch, expected, _tolerance(loaded))


def _compare(
    capture: Capture, batch: Batch, expected: dict[str, torch.Tensor], tolerance: float
) -> None:
    got = capture(batch).blocks
    if got.keys() != expected.keys():
        odd = sorted(got.keys() ^ expected.keys())
        raise CannotRunError(f"The captured blocks are not the adapter's blocks: {odd[:3]}.")
    total = sum(float(block.double().square().sum()) for block in expected.values()) ** 0.5
    wrong = [
        name
        for name, block in expected.items()
        # a block without gradient is measured against the whole
        if float((got[name] - block).double().norm())
        > tolerance * max(float(block.double().norm()), 1e-3 * total)
    ]
    if wrong:
        raise CannotRunError(
            f"Captured gradients of {len(wrong)} of {len(expected)} blocks differ from plain "
            f"autograd: {', '.join(wrong[:3])}.",
            hint="Use grads.strategy: loop, and please report this model.",
        )


def _probe_rows(tokens: TokenizedRows) -> Sequence[int]:
    usable = np.flatnonzero(tokens.supervised_counts > 0)
    if len(usable) == 0:
        return ()
    lengths = tokens.lengths[usable]
    # the shortest and the median row: cheap, and different in length where lengths differ at all
    order = usable[np.argsort(lengths, kind="stable")]
    return [int(order[0])] if len(order) == 1 else [int(order[0]), int(order[len(order) // 2])]


def _tolerance(loaded: LoadedModel) -> float:
    dtype = loaded.model.get_input_embeddings().weight.dtype
    return _TOLERANCE.get(dtype, _HALF_TOLERANCE)
