"""Training in a random state of its own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

__all__ = ["own_random_state"]


@contextmanager
def own_random_state() -> Iterator[None]:
    """Give the caller's random states back afterwards: trainers seed all of them."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002 - what trainers seed
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002
