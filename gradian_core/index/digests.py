"""Digests of files and folders, remembered so that gigabytes are hashed once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

from gradian_core.errors import InputError
from gradian_core.files import write_atomic

__all__ = [
    "ADAPTER_FILES",
    "MODEL_FILES",
    "TOKENIZER_FILES",
    "DigestCache",
    "file_digest",
    "folder_digest",
]

ADAPTER_FILES = ("adapter_config.json", "adapter_model*")
MODEL_FILES = ("config.json", "*.safetensors", "*.safetensors.index.json", "*.bin", "*.gguf")
TOKENIZER_FILES = (
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "chat_template*",
    "additional_chat_templates/*",
)

_SETTLED_NS = 2_000_000_000


class DigestCache:
    """Digests by (path, size, modification time), in ``digests.json`` of a cache folder.

    It only saves time: a file that is missing, or cannot be read or written, costs fresh hashes
    and nothing else.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "digests.json"
        self._known = self._load()

    def _load(self) -> dict[str, list[object]]:
        try:
            raw = json.loads(self._path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        # a flipped bit in a digest is another digest, and with it another index and provenance
        files = raw.get("files") if isinstance(raw, dict) else None
        if not isinstance(files, dict) or raw.get("checksum") != _checksum(files):
            return {}
        return {
            path: entry
            for path, entry in files.items()
            if isinstance(entry, list) and len(entry) == 3 and isinstance(entry[2], str)
        }

    def get(self, path: Path, size: int, modified: int) -> str | None:
        """Return the digest of a file that has not changed since it was hashed, or None."""
        entry = self._known.get(str(path))
        return str(entry[2]) if entry is not None and entry[:2] == [size, modified] else None

    def put(self, path: Path, size: int, modified: int, digest: str) -> None:
        """Remember a digest, unless the file is so fresh that a change could go unnoticed."""
        # A second write within the clock's grain would keep size and modification time.
        if time.time_ns() - modified < _SETTLED_NS:
            return
        # What another process has stored in the meantime is kept.
        self._known = {**self._load(), **self._known, str(path): [size, modified, digest]}
        # A cache that cannot be written costs time and nothing else.
        with contextlib.suppress(OSError):
            body = {"checksum": _checksum(self._known), "files": self._known}
            write_atomic(self._path, json.dumps(body, sort_keys=True))


def _checksum(files: object) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def file_digest(path: Path, cache: DigestCache | None = None) -> str:
    """Return the SHA-256 of a file's content, read in pieces.

    Raises
    ------
    InputError
        If it is not a readable file.
    """
    # The hub's snapshots are links; the same blob is then hashed once for all of them.
    real = path.resolve()
    try:
        if not real.is_file():
            raise InputError(f"{path} is not a file.")
        state = real.stat()
        known = None if cache is None else cache.get(real, state.st_size, state.st_mtime_ns)
        if known is not None:
            return known
        with real.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    if cache is not None:
        cache.put(real, state.st_size, state.st_mtime_ns, digest)
    return digest


def folder_digest(
    folder: Path, patterns: Sequence[str] = ("*",), cache: DigestCache | None = None
) -> str:
    """Return one SHA-256 over the names and contents of the files that match.

    Parameters
    ----------
    folder
        A folder, such as an adapter's; it may have any name and place. A single file
        (``model.gguf``) gives the digest of its content.
    patterns
        Glob patterns below it, such as :data:`MODEL_FILES`.
    cache
        Remembers the digests of large files.

    Raises
    ------
    InputError
        If the folder does not exist or nothing in it matches.
    """
    if folder.is_file():
        return file_digest(folder, cache)
    if not folder.is_dir():
        raise InputError(f"{folder} is neither a file nor a folder.")
    found = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    if not found:
        raise InputError(f"{folder} has no file that matches {', '.join(patterns)}.")
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(folder).as_posix(), path) for path in found):
        digest.update(f"{name}\0{file_digest(path, cache)}\n".encode())
    return digest.hexdigest()
