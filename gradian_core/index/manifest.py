"""What an index was made from and what lies in it; the last file that a build writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gradian_core.errors import InputError
from gradian_core.files import write_atomic
from gradian_core.index.damage import DamagedIndexError
from gradian_core.text import excerpt

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "BlockEntry",
    "GradientSpec",
    "IndexInputs",
    "IndexManifest",
    "ShardEntry",
    "SkippedRow",
    "read_manifest",
    "write_manifest",
]

FORMAT: Final = "gradian-gradient-index"
FORMAT_VERSION = "1.0"
"""Major and minor version: a reader accepts its own major version and no newer one."""

MANIFEST = "manifest.json"
_CHECKSUM = "sha256"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class GradientSpec(_Frozen):
    """The settings that decide the numbers in an index (a part of the ``grads`` section).

    ``loss_reduction`` and ``normalization`` are not among them: an index holds gradients of the
    mean loss, and both are factors per row that a reader applies. ``strategy`` is, because two
    strategies that agree may still differ in the last bits.
    """

    strategy: str = "hooks"
    max_seq_length: int
    module_filter: str | None = None
    block_granularity: str = "module"
    projection_dim: int | None = None
    projection_kind: str = "countsketch"
    projection_seed: int = 0
    storage_dtype: Literal["float32", "float16"] = "float32"


class IndexInputs(_Frozen):
    """Everything that decides the numbers in an index; its hash is the index's address."""

    adapter: str
    """Content digest of the adapter."""
    adapter_scale: float = Field(1.0, ge=0, allow_inf_nan=False)
    """Factor on every ``lora_B``: gradients are those at the adapter scaled by it."""
    base: str
    """Content digest of the base model's weights and config."""
    dataset: str
    """Digest of the rows as tokens and loss mask, in order."""
    tokenizer: str
    """Fingerprint of the tokenizer and its chat template."""
    spec: GradientSpec
    seed: int
    dtype: str
    """Type of the model's weights."""
    device: str
    """Kind of device, ``cpu`` or ``cuda``: kernels differ in the last bits."""
    attn_implementation: str
    libraries: dict[str, str]
    """Versions of the libraries that compute or store (:func:`address.library_versions`)."""


class BlockEntry(_Frozen):
    """One block."""

    name: str
    parameters: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dim: int = Field(ge=1)
    """Components of the exact gradient."""
    stored_dim: int = Field(ge=1)
    """Components in the index; fewer than ``dim`` where it is projected."""


class ShardEntry(_Frozen):
    """One shard; its file is ``shards/NNNNN.h5`` by its place in the list."""

    rows: int = Field(ge=1)
    size: int = Field(ge=1)
    """Bytes of the file."""
    digest: str
    """SHA-256 of its content."""


class SkippedRow(_Frozen):
    """A row without a gradient; its score is 0."""

    position: int = Field(ge=0)
    id: str
    reason: str


class IndexManifest(_Frozen):
    """``manifest.json``. An index without one is incomplete."""

    format: Literal["gradian-gradient-index"] = FORMAT
    format_version: str = FORMAT_VERSION
    id: str
    created_by: dict[str, str]
    """Name and version of the program that built it."""
    inputs: IndexInputs
    provenance: dict[str, str] = Field(default_factory=dict)
    """Names for people (model, data set); they do not decide any number."""
    blocks: tuple[BlockEntry, ...] = Field(min_length=1)
    n: int = Field(ge=1)
    """Rows that are stored."""
    n_rows_total: int = Field(ge=1)
    """Rows of the data set: stored and skipped."""
    skipped: tuple[SkippedRow, ...] = ()
    shards: tuple[ShardEntry, ...] = Field(min_length=1)
    notes: tuple[str, ...] = ()
    """What was skipped, degraded or guessed, as sentences for the report."""

    @property
    def row_bytes(self) -> int:
        """Bytes of one stored gradient."""
        size = 2 if self.inputs.spec.storage_dtype == "float16" else 4
        return size * sum(block.stored_dim for block in self.blocks)


def write_manifest(folder: Path, manifest: IndexManifest) -> None:
    """Write ``manifest.json``, whole or not at all; the same manifest gives the same bytes."""
    body = manifest.model_dump(mode="json")
    # a number that a bit flip has turned into another one is still a number
    body[_CHECKSUM] = _checksum(body)
    write_atomic(folder / MANIFEST, json.dumps(body, indent=2) + "\n")


def _checksum(body: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def read_manifest(folder: Path) -> IndexManifest:
    """Read and check the manifest of an index.

    Raises
    ------
    InputError
        If the folder is not an index, its build has not finished, or a newer Gradian wrote it.
    DamagedIndexError
        If the manifest is not what was written.
    """
    path = folder / MANIFEST
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise _no_manifest(folder) from None
    except IsADirectoryError:
        raise DamagedIndexError(path, "it is a folder") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    raw = _parse(path, text)
    _refuse_other_formats(path, raw)
    if raw.pop(_CHECKSUM, None) != _checksum(raw):
        raise DamagedIndexError(path, "its checksum does not match")
    try:
        manifest = IndexManifest.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DamagedIndexError(path, f"{where}: {first['msg']}") from None
    _refuse_contradictions(path, manifest)
    return manifest


def _no_manifest(folder: Path) -> InputError:
    if not folder.is_dir():
        return InputError(f"There is no index at {folder}: no such folder.")
    if (folder / "shards").is_dir():
        return InputError(
            f"The index at {folder} is incomplete: its build was interrupted or is still running.",
            hint="Run the same command again; it goes on from the last whole shard.",
        )
    return InputError(f"{folder} is not a gradient index: it has no {MANIFEST}.")


def _parse(path: Path, text: bytes) -> dict[str, object]:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict):
        raise DamagedIndexError(path, "it is not a JSON object")
    return raw


def _refuse_other_formats(path: Path, raw: Mapping[str, object]) -> None:
    if raw.get("format") != FORMAT:
        raise DamagedIndexError(path, "it is not the manifest of a gradient index")
    version = str(raw.get("format_version"))
    major = version.partition(".")[0]
    ours = int(FORMAT_VERSION.partition(".")[0])
    if not (major.isascii() and major.isdecimal()):
        raise DamagedIndexError(path, f"{excerpt(version, 40)} is not a format version")
    if int(major) > ours:
        raise InputError(
            f"{path} has format {version}; this Gradian reads {FORMAT_VERSION}.",
            hint="Upgrade Gradian, or build the index again with --force.",
        )


def _refuse_contradictions(path: Path, manifest: IndexManifest) -> None:
    stored = sum(shard.rows for shard in manifest.shards)
    names = {block.name for block in manifest.blocks}
    if (
        stored != manifest.n
        or manifest.n + len(manifest.skipped) != manifest.n_rows_total
        or len(names) != len(manifest.blocks)
        or any(block.stored_dim > block.dim for block in manifest.blocks)
    ):
        raise DamagedIndexError(path, "its numbers of rows or blocks contradict each other")
