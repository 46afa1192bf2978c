"""Headers and tensors of ``adapter_model.safetensors``, without torch.

The format is eight bytes of little-endian length, that many bytes of JSON, then the data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.audit.facts import NotAssessed
from gradian_core.runs.artifact import AdapterInfo

__all__ = ["Tensor", "Weights", "adapter_weights"]

_FILE = "adapter_model.safetensors"
_HEADER_LIMIT = 100 << 20
_LFS = b"version https://git-lfs"
_TYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor lies: its type, shape, and first and last byte in the file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Weights:
    """An adapter's weights; tensors are read when they are asked for."""

    path: Path
    file_size: int
    tensors: Mapping[str, Tensor]

    def read(self, name: str) -> NDArray[np.float32 | np.float64] | None:
        """Return a tensor as a flat array of float32 or wider, None for other types."""
        tensor = self.tensors[name]
        kind = _TYPES.get(tensor.dtype)
        if kind is None:
            return None
        if tensor.end - tensor.start != tensor.size * kind.itemsize or tensor.end > self.file_size:
            raise NotAssessed(f"{self.path} is damaged: {name} does not fit in the file.")
        values: NDArray[Any] = np.fromfile(self.path, kind, count=tensor.size, offset=tensor.start)
        if tensor.dtype == "BF16":
            # bfloat16 is the upper half of a float32
            values = (values.astype(np.uint32) << 16).view(np.float32)
        return values.astype(np.float32) if tensor.dtype == "F16" else values


def adapter_weights(adapter: AdapterInfo) -> Weights:
    """Read the header of an adapter's weights.

    Raises
    ------
    NotAssessed
        If there is no such file, it is a Git-LFS pointer, or it is damaged.
    """
    folder = adapter.path if adapter.path.is_dir() else adapter.path.parent
    path = folder / _FILE
    if adapter.basis != "ran" or not path.is_file():
        raise NotAssessed(f"There is no {_FILE} beside the adapter's configuration.")
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        if head + file.read(len(_LFS) - 8) == _LFS:
            raise NotAssessed(f"{path} is a Git-LFS pointer: run 'git lfs pull' for the weights.")
        length = int.from_bytes(head, "little")
        if size < 8 or not 0 < length <= min(size - 8, _HEADER_LIMIT):
            raise NotAssessed(f"{path} is damaged: its header does not fit in the file.")
        file.seek(8)
        body = file.read(length)
    try:
        header = json.loads(body)
        tensors = {
            str(name): _tensor(entry, 8 + length)
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise NotAssessed(f"{path} is damaged: its header cannot be read.") from error
    return Weights(path=path, file_size=size, tensors=tensors)


def _tensor(entry: Mapping[str, Any], base: int) -> Tensor:
    start, end = (int(offset) for offset in entry["data_offsets"])
    shape = tuple(int(n) for n in entry["shape"])
    if not 0 <= start <= end or any(n < 0 for n in shape):
        raise ValueError
    return Tensor(str(entry["dtype"]), shape, base + start, base + end)
