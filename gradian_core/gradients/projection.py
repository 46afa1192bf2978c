"""Johnson-Lindenstrauss projection of a block's gradients.

Both families keep inner products unbiased: the expectation over seeds of ``<Px, Py>`` is
``<x, y>``. They are functions of (seed, block name) alone. Their random bits are the raw output
of a Philox counter, drawn on the CPU, so they are the same on every device and do not depend on
how numpy turns bits into distributions, which it may change between versions.

Sources: Charikar, Chen and Farach-Colton 2002 (count sketch); Achlioptas 2003 (±1 matrices).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

    Projection = Callable[[torch.Tensor], torch.Tensor]

__all__ = ["make_projection"]

SLAB_BYTES = 64 << 20
"""Most bytes of the ±1 matrix that are expanded at once, whatever its size."""


def make_projection(
    kind: str, dim_in: int, width: int, seed: int, block_name: str
) -> Projection | None:
    """Make the projection of one block.

    Parameters
    ----------
    kind
        ``countsketch`` (one pass over the gradient, error of the inner product about
        ``|x||y|/sqrt(width)``) or ``rademacher`` (the same error, ``width`` times the work: its
        matrix is drawn again for every batch so that it never has to fit into memory).
    dim_in
        Components of the exact gradient.
    width
        Components wanted.
    seed, block_name
        Decide every random bit; different blocks are independent.

    Returns
    -------
    callable or None
        ``(B, dim_in)`` tensor to ``(B, width)`` tensor of the same device and type. None where
        ``width >= dim_in``: projecting would add noise and save nothing, so the block is kept
        exactly.
    """
    if width < 1:
        raise ValueError(f"a projection has at least one component, not {width}")
    if kind not in {"countsketch", "rademacher"}:
        raise ValueError(f"no projection is called {kind!r}")
    if width >= dim_in:
        return None
    key = _key(kind, seed, block_name)
    return _countsketch(key, dim_in, width) if kind == "countsketch" else _rademacher(key, width)


def _key(kind: str, seed: int, block_name: str) -> int:
    digest = hashlib.sha256(f"gradian projection 1\0{kind}\0{seed}\0{block_name}".encode())
    return int.from_bytes(digest.digest()[:16], "little")


def _words(key: int, start: int, count: int) -> NDArray[np.uint64]:
    """Random 64-bit words ``start`` to ``start + count`` of a key; ``start`` divisible by 4."""
    # A Philox counter stands for four words.
    generator = np.random.Philox(key=key)
    generator.advance(start // 4)
    words: NDArray[np.uint64] = generator.random_raw(count)
    return words


def _countsketch(key: int, dim_in: int, width: int) -> Projection:
    import torch

    words = _words(key, 0, dim_in)
    # The lowest bit is the sign, so the bucket is taken from the others.
    signs = torch.from_numpy(1 - 2 * (words & np.uint64(1)).astype(np.int8))
    # int64 although int32 would do: torch's index_add_ has a fast path for it alone.
    buckets = torch.from_numpy(((words >> np.uint64(1)) % np.uint64(width)).astype(np.int64))

    def project(gradients: torch.Tensor) -> torch.Tensor:
        nonlocal signs, buckets
        if buckets.device != gradients.device:
            signs, buckets = signs.to(gradients.device), buckets.to(gradients.device)
        out = gradients.new_zeros((len(gradients), width))
        return out.index_add_(1, buckets, gradients * signs)

    return project


def _rademacher(key: int, width: int) -> Projection:
    import torch

    words_per_column = -(-width // 64)

    def project(gradients: torch.Tensor) -> torch.Tensor:
        dim_in = gradients.shape[1]
        # A multiple of four columns keeps every slab on a counter's boundary: the matrix does
        # not depend on the size of the slabs.
        step = max(4, SLAB_BYTES // (4 * width) // 4 * 4)
        out = gradients.new_zeros((len(gradients), width))
        for start in range(0, dim_in, step):
            columns = min(step, dim_in - start)
            words = _words(key, start * words_per_column, columns * words_per_column)
            octets = words.astype("<u8").view(np.uint8).reshape(columns, words_per_column * 8)
            bits = np.unpackbits(octets, axis=1, count=width, bitorder="little")
            signs = torch.from_numpy(bits).to(gradients.device, gradients.dtype)
            out += gradients[:, start : start + columns] @ (1 - 2 * signs)
        scaled: torch.Tensor = out / width**0.5
        return scaled

    return project
