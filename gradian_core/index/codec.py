"""Gradients as half floats: a power of two per row and block brings each into range."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["decode", "encode"]

TOP_EXPONENT = 15
"""Largest component is brought to [2**14, 2**15): below float16's maximum of 65504."""

_SMALLEST = -126
"""Exponent of float32's smallest normal number; scales never leave float32's normal range."""


def encode(
    gradients: NDArray[np.float32],
) -> tuple[NDArray[np.float16], NDArray[np.float32]]:
    """Encode rows of one block.

    Gradients of fitted examples are about 1e-6 and smaller, where float16 has no precision
    left. The scale is a power of two, so that multiplying by it rounds nothing: the only error
    is float16's own, 2**-11 relative for components down to 2**-28 of the row's largest.

    Parameters
    ----------
    gradients
        ``(B, dim)`` finite float32.

    Returns
    -------
    codes, scales
        ``(B, dim)`` float16 and ``(B,)`` float32; the gradient is ``codes * scales``.
    """
    largest = np.abs(gradients).max(axis=1)
    _, exponents = np.frexp(largest)
    exponents = np.where(largest > 0, np.maximum(exponents - TOP_EXPONENT, _SMALLEST), 0)
    codes = np.ldexp(gradients, -exponents[:, None]).astype(np.float16)
    return codes, np.ldexp(np.float32(1), exponents).astype(np.float32)


def decode(codes: NDArray[np.float16], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the ``(B, dim)`` float32 gradients of codes and scales; exact."""
    import torch

    # numpy converts half floats one by one; torch uses the processor's instruction for it
    gradients: NDArray[np.float32] = torch.from_numpy(codes).float().numpy()
    gradients *= scales[:, None]
    return gradients
