"""The address of an index is what it was made from.

An index whose inputs hash to the same id holds the same numbers, so a second question about the
same run costs no gradient. What only changes how the stored numbers are *used* (loss reduction,
normalisation, engine, damping, clustering) is part of a result's id, not of the index's: changing
it recomputes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from gradian_core.index.manifest import FORMAT, FORMAT_VERSION, IndexInputs

if TYPE_CHECKING:
    from gradian_core.data.tokens import TokenizedRows

__all__ = ["index_id", "library_versions", "result_id", "tokens_digest"]

DIGITS = 20
"""Hex digits of an id: 80 bits."""

_LIBRARIES = ("torch", "transformers", "peft", "numpy", "h5py")


def index_id(inputs: IndexInputs) -> str:
    """Return the id of the index that is made from these inputs (20 hex digits)."""
    # at the adapter itself the scale says nothing, and says so in no id
    unsaid = {"adapter_scale"} if inputs.adapter_scale == 1.0 else set()
    content = inputs.model_dump(mode="json", exclude=unsaid)
    return _hash({"format": [FORMAT, FORMAT_VERSION], "inputs": content})


def result_id(index: str, settings: Mapping[str, object]) -> str:
    """Return the id of a result computed from an index.

    Parameters
    ----------
    index
        Id of the index.
    settings
        JSON values: everything that decides the result beside the index (loss reduction,
        normalisation, engine with its damping, query, clustering).
    """
    return _hash({"index": index, "settings": dict(settings)})


def library_versions() -> dict[str, str]:
    """Return the installed versions of the libraries that compute or store gradients."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def tokens_digest(tokenized: TokenizedRows, rows: Iterable[int] | None = None) -> str:
    """Return the SHA-256 of what is differentiated: ids, tokens and loss mask, in order.

    Parameters
    ----------
    tokenized
        The data set.
    rows
        Places of the rows wanted; None for all.
    """
    digest = hashlib.sha256()
    for row in range(len(tokenized)) if rows is None else rows:
        ids, mask = tokenized.row(int(row))
        # Types and byte order are fixed, so that the digest is the same on every machine.
        digest.update(f"{tokenized.ids[row]}\0{len(ids)}\0".encode())
        digest.update(ids.astype("<i4", copy=False).tobytes())
        digest.update(mask.astype("|b1", copy=False).tobytes())
    return digest.hexdigest()


def _hash(content: Mapping[str, object]) -> str:
    canonical = json.dumps(
        content, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    return hashlib.sha256(canonical.encode()).hexdigest()[:DIGITS]
