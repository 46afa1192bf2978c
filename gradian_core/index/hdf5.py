"""HDF5 files that appear whole or not at all, and whose damage is told in a sentence."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t
from numpy.typing import NDArray

from gradian_core.index.damage import DamagedIndexError

__all__ = [
    "chunk_rows",
    "create_dataset",
    "create_virtual",
    "new_image",
    "open_checked",
    "publish",
    "row_bytes",
]

CHUNK_BYTES = 1 << 20

# The oldest format with virtual datasets and fast chunk indexes: any HDF5 since 2016 reads it,
# and the bytes do not change when a newer HDF5 writes them.
_LIBVER = ("v110", "v110")


def row_bytes(array: Any) -> int:
    """Return the bytes of one row of an array or a dataset."""
    return int(array.dtype.itemsize) * int(np.prod(array.shape[1:], dtype=np.int64))


def chunk_rows(size: int) -> int:
    """Return how many whole rows of ``size`` bytes make a chunk of about 1 MiB."""
    return max(1, CHUNK_BYTES // max(1, size))


def create_dataset(group: Any, name: str, array: NDArray[Any]) -> None:
    """Store an array in checksummed chunks of whole rows.

    Uncompressed: gzip is twenty times slower for 8 % less.
    """
    group.create_dataset(
        name,
        data=array,
        chunks=(min(len(array), chunk_rows(row_bytes(array))), *array.shape[1:]),
        fletcher32=True,
        track_times=False,
    )


def create_virtual(
    file: Any, name: str, width: int, dtype: str, sources: Sequence[tuple[str, slice]]
) -> None:
    """Join one dataset of several files into one, without copying.

    Parameters
    ----------
    file
        An open file.
    name
        Of the dataset, here and in the sources.
    width
        Its columns.
    dtype
        Its type.
    sources
        Path of each file, relative to this one so that the folder can be moved, and the rows
        that lie in it.
    """
    total = sources[-1][1].stop
    # h5py's own VirtualLayout stamps the time of day into the file.
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_obj_track_times(False)
    # HDF5 fills in for a file that is missing, without a word: let it be no number.
    properties.set_fill_value(np.full(1, np.nan, dtype))
    for path, rows in sources:
        here = h5s.create_simple((total, width))
        there = (rows.stop - rows.start, width)
        here.select_hyperslab((rows.start, 0), there)
        properties.set_virtual(here, path.encode(), name.encode(), h5s.create_simple(there))
    parent, _, last = name.rpartition("/")
    h5d.create(
        file.require_group(parent or "/").id,
        last.encode(),
        h5t.py_create(np.dtype(dtype)),
        h5s.create_simple((total, width)),
        properties,
    )


@contextmanager
def new_image() -> Iterator[tuple[Any, io.BytesIO]]:
    """Give an HDF5 file in memory and the buffer that holds its bytes once it is closed.

    HDF5 cannot close a file that it failed to write: on a full disk it keeps open handles and
    ends in a segmentation fault. So it never writes to the disk itself.
    """
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", libver=_LIBVER) as file:
        yield file, buffer


def publish(path: Path, image: io.BytesIO) -> None:
    """Write bytes beside ``path``, force them to the disk, and rename: whole or absent.

    Raises
    ------
    OSError
        If the disk is full or fails; nothing is left behind.
    """
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(image.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    # Without this a power cut may undo the rename. Windows has no such call.
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def open_checked(path: Path) -> Iterator[Any]:
    """Open a file of an index for reading.

    Raises
    ------
    DamagedIndexError
        If it is missing, truncated, fails a checksum, or if the body of the ``with`` finds that
        something in it is missing or wrong.
    """
    if not path.is_file():
        raise DamagedIndexError(path, "the file is missing")
    try:
        # Published files never change, and locks fail on many network file systems.
        with h5py.File(path, "r", locking=False) as file:
            yield file
    except DamagedIndexError:
        raise
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
        text = str(error.args[0]) if error.args else type(error).__name__
        # HDF5 says no more than this where a fletcher32 checksum fails.
        reason = "a checksum does not match" if "filter returned failure" in text else text
        raise DamagedIndexError(path, reason.rstrip(".")) from None
