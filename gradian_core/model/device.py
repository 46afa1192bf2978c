"""Where and how precisely to compute."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from gradian_core.errors import CannotRunError, UsageError
from gradian_core.text import excerpt

__all__ = ["deterministic", "resolve_device", "resolve_dtype"]

_DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def resolve_device(name: str) -> torch.device:
    """Return the device for a config value.

    ``auto`` is CUDA when visible, else the CPU; MPS is used only when it is asked for.

    Raises
    ------
    UsageError
        If the name is no device.
    CannotRunError
        If that device is not visible on this machine.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UsageError(
            f"device: {excerpt(name, 80)!r} is not a device.",
            hint="Use auto, cpu, cuda, cuda:N or mps.",
        ) from error
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            raise CannotRunError(
                f"device: {name} was asked for, but {count} CUDA devices are visible.",
                hint="Use device: cpu, or check the driver with gradian doctor.",
            )
    elif device.type == "mps":
        if not torch.backends.mps.is_available():
            raise CannotRunError("device: mps was asked for, but is not available here.")
    elif device.type != "cpu":
        raise UsageError(
            f"device: {name!r} is not supported.", hint="Use auto, cpu, cuda, cuda:N or mps."
        )
    return device


def resolve_dtype(name: str, device: torch.device) -> torch.dtype | None:
    """Return the dtype of the weights; None means the checkpoint's own.

    ``auto`` is float32 on a CPU, where half precision is slow and imprecise, and the
    checkpoint's own type elsewhere.
    """
    if name == "auto":
        return torch.float32 if device.type == "cpu" else None
    return _DTYPES[name]


@contextmanager
def deterministic(seed: int) -> Iterator[None]:
    """Seed torch and ask for deterministic kernels; restore both afterwards.

    On a GPU a kernel without a deterministic form warns and does not fail.
    """
    before: Any = torch.random.get_rng_state()
    enabled = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    # cuBLAS reads this when its first handle is made; without it every GEMM would warn.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(mode=enabled, warn_only=warn_only)
        torch.random.set_rng_state(before)
