"""Tokens on disk, under a name made of everything that they depend on."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gradian_core.data.encode import Encoded, encode
from gradian_core.data.files import Dataset
from gradian_core.data.supervision import Supervise
from gradian_core.data.template import chat_template
from gradian_core.data.tokens import Supervision, TokenizedRows
from gradian_core.files import reason, remove

__all__ = ["FORMAT", "encode_cached", "tokenizer_fingerprint"]

FORMAT = 2
"""Raised whenever rows, rendering, masks or the files change their meaning."""

_META = "tokens.json"
_DTYPES = {
    "ids": "S",
    "rows": "int64",
    "input_ids": "int32",
    "supervised": "bool",
    "offsets": "int64",
    "full_lengths": "int32",
    "full_supervised": "int32",
    "supervision": "uint8",
}
_LIBRARIES = ("jinja2", "tokenizers", "transformers")


class _DamagedError(Exception):
    pass


def tokenizer_fingerprint(tokenizer: Any) -> str:
    """Return a SHA-256 (hex) of what decides about tokens and templates.

    Vocabulary, merges, normalisation, added and special tokens and chat templates are in it;
    names, folders, padding and truncation are not.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        model = json.loads(backend.to_str())
        # Any earlier call may have left these behind.
        model.pop("padding", None)
        model.pop("truncation", None)
    else:
        added = sorted((i, repr(token)) for i, token in tokenizer.added_tokens_decoder.items())
        model = {
            "class": type(tokenizer).__name__,
            "vocabulary": dict(tokenizer.get_vocab()),
            "added": added,
            "probe": tokenizer("a A\n 1", verbose=False)["input_ids"],
        }
    content = {
        "model": model,
        "special": {name: str(value) for name, value in tokenizer.special_tokens_map.items()},
        "template": getattr(tokenizer, "chat_template", None),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def encode_cached(
    dataset: Dataset,
    tokenizer: Any,
    *,
    max_seq_length: int,
    supervise: Supervise = "all",
    lenient: bool = False,
    cache_dir: str | Path,
) -> Encoded:
    """Return what :func:`~gradian_core.data.encode.encode` returns, from disk if it is there.

    The arrays lie in ``<cache_dir>/tokens/<id>/`` and are mapped into memory read-only. A
    damaged entry is built again, and a folder that cannot be written is no error; the notes
    tell of both.

    Parameters
    ----------
    dataset, tokenizer, max_seq_length, supervise, lenient
        As for :func:`~gradian_core.data.encode.encode`.
    cache_dir
        Folder of all caches.
    """
    template = chat_template(tokenizer)
    key = {
        "format": FORMAT,
        "dataset": dataset.fingerprint,
        "tokenizer": tokenizer_fingerprint(tokenizer),
        "max_seq_length": max_seq_length,
        "supervise": supervise,
        "lenient": lenient,
        "libraries": {name: version(name) for name in _LIBRARIES},
        "date": str(datetime.now(UTC).date()) if template and template.writes_date else None,
    }
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:20]
    folder = Path(cache_dir) / "tokens" / name
    notes: list[str] = []
    if os.path.lexists(folder):
        try:
            return _read(folder, key)
        except (_DamagedError, OSError, ValueError, KeyError, TypeError) as error:
            notes.append(
                f"The cached tokens {name} were damaged ({reason(error)}) and were built again."
            )
    encoded = encode(
        dataset, tokenizer, max_seq_length=max_seq_length, supervise=supervise, lenient=lenient
    )
    try:
        _write(folder, key, encoded)
        encoded = _read(folder, key)
    except (OSError, _DamagedError) as error:
        notes.append(f"The tokens could not be cached ({reason(error)}).")
    return Encoded(tokens=encoded.tokens, problems=encoded.problems, notes=(*encoded.notes, *notes))


def _write(folder: Path, key: dict[str, Any], encoded: Encoded) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    new.mkdir()
    try:
        digests = {}
        for name in _DTYPES:
            values = getattr(encoded.tokens, name)
            column = np.array(values, np.bytes_) if name == "ids" else values
            with (new / f"{name}.npy").open("xb") as file:
                np.save(file, column, allow_pickle=False)
                _sync(file)
            digests[name] = _digest(new / f"{name}.npy")
        meta = {
            "key": key,
            "sha256": digests,
            "notes": encoded.notes,
            "problems": {str(place): reason for place, reason in encoded.problems.items()},
        }
        with (new / _META).open("x", encoding="utf-8") as text:
            json.dump({**meta, "checksum": _checksum(meta)}, text, indent=1, sort_keys=True)
            _sync(text)
        if folder.exists():
            # Moved aside first: a folder cannot be replaced in one step, and a reader that has
            # mapped the old files keeps them.
            old = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
            folder.replace(old)
            remove(old)
        try:
            new.replace(folder)
        except OSError:
            if not folder.exists():
                raise
            # Another process has put the same content there meanwhile.
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _read(folder: Path, key: dict[str, Any]) -> Encoded:
    meta = json.loads((folder / _META).read_text(encoding="utf-8"))
    if not isinstance(meta, dict) or meta.pop("checksum", None) != _checksum(meta):
        raise _DamagedError(f"{_META} has changed")
    if meta["key"] != key:
        raise _DamagedError("it belongs to something else")
    arrays = {}
    for name, dtype in _DTYPES.items():
        path = folder / f"{name}.npy"
        if _digest(path) != meta["sha256"][name]:
            raise _DamagedError(f"{path.name} has changed")
        # An empty array cannot be mapped, and a tiny one need not be.
        mode: Literal["r"] | None = "r" if path.stat().st_size > 1024 else None
        array = np.load(path, mmap_mode=mode, allow_pickle=False)
        kind = array.dtype.kind if dtype == "S" else array.dtype.name
        if array.ndim != 1 or kind != dtype:
            raise _DamagedError(f"{path.name} holds {array.dtype} in {array.ndim} dimensions")
        arrays[name] = array
    ids = tuple(value.decode() for value in arrays.pop("ids").tolist())
    tokens = TokenizedRows(ids=ids, **arrays)
    _check(tokens, key["max_seq_length"])
    problems = {int(place): str(reason) for place, reason in meta["problems"].items()}
    return Encoded(tokens=tokens, problems=problems, notes=tuple(map(str, meta["notes"])))


def _check(tokens: TokenizedRows, max_seq_length: int) -> None:
    n = len(tokens.ids)
    columns = (tokens.rows, tokens.full_lengths, tokens.full_supervised, tokens.supervision)
    total = int(tokens.offsets[-1]) if len(tokens.offsets) else -1
    whole = (
        all(len(column) == n for column in columns)
        and len(tokens.offsets) == n + 1
        and tokens.offsets[0] == 0
        and len(tokens.input_ids) == len(tokens.supervised) == total
    )
    if not whole:
        raise _DamagedError("its arrays do not fit together")
    lengths = tokens.lengths
    sound = (
        np.array_equal(lengths, np.minimum(tokens.full_lengths, max_seq_length))
        and np.all(tokens.supervision <= max(Supervision))
        and np.all(tokens.full_supervised <= tokens.full_lengths)
    )
    if not sound:
        raise _DamagedError("its columns contradict each other")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum(meta: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
