"""An adapter with weights on disk, for the examples of checks that read them."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.audit import samples
from gradian_core.runs.artifact import AdapterInfo

__all__ = ["adapter_with"]


def adapter_with(tensors: Mapping[str, NDArray[np.floating[Any]]], **raw: Any) -> AdapterInfo:
    """Return an adapter whose folder, which goes when the process ends, holds these weights.

    Parameters
    ----------
    tensors
        By name, as PEFT spells it after ``base_model.model.``.
    **raw
        As for :func:`gradian_core.audit.samples.adapter`.
    """
    from safetensors.numpy import save_file

    folder = Path(tempfile.mkdtemp(prefix="gradian-sample-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    named = {f"base_model.model.{name}": values for name, values in tensors.items()}
    save_file(named, folder / "adapter_model.safetensors")
    return samples.adapter(path=folder, **raw)
