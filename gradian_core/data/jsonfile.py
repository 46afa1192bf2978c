"""Rows in ``.jsonl`` and ``.json`` files, parsed one at a time from where they lie.

Only the place of each row is kept in memory (24 bytes a row), not its text; a file that is one
JSON document is in memory as a whole while its rows are looked for.
"""

from __future__ import annotations

import itertools
import json
import re
from array import array
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gradian_core.data.rows import match_shape
from gradian_core.data.turns import kind_of
from gradian_core.errors import InputError

__all__ = ["JsonRows", "open_json"]

_BOM = b"\xef\xbb\xbf"
_LONGEST = 64 * 2**20
"""Bytes of a row that is read. No sequence of any model is that long; a file without line breaks
is, and parsing it takes ten times its size in memory."""
_CONTAINERS = ("train", "data")
_SPACE = re.compile(r"[ \t\r\n]*")


class _DuplicateKeyError(ValueError):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # json keeps the last of two equal keys and drops the other without a word.
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise _DuplicateKeyError(f"the key {twice!r} stands twice in one object")
    return result


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


@dataclass(frozen=True, slots=True, eq=False)
class JsonRows:
    """Rows of a JSON or JSON Lines file.

    Parameters
    ----------
    path
        The file.
    spans
        ``(n, 2)`` int64: first byte of each row and the byte after its last.
    lines
        ``(n,)`` int64: line of each row, from 1.
    notes
        What had to be guessed about the file.
    stamp
        Size and modification time; a file that changes under us is refused.
    """

    path: Path
    spans: NDArray[np.int64]
    lines: NDArray[np.int64]
    notes: tuple[str, ...]
    stamp: tuple[int, int]

    def __len__(self) -> int:
        return len(self.spans)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        with self._open() as file:
            for index in range(len(self)):
                yield self._parse(file, index)

    def attempts(self) -> Iterator[Mapping[str, Any] | InputError]:
        """Stream all rows, and in place of those that are no JSON objects, the reason."""
        with self._open() as file:
            for index in range(len(self)):
                try:
                    row: Mapping[str, Any] | InputError = self._parse(file, index)
                except InputError as error:
                    row = error
                yield row

    def without(self, rows: Collection[int]) -> JsonRows:
        """Return the rows without some of them, by index."""
        gone = np.fromiter(rows, np.int64, len(rows))
        return replace(
            self, spans=np.delete(self.spans, gone, 0), lines=np.delete(self.lines, gone)
        )

    def __getitem__(self, index: int) -> Mapping[str, Any]:
        with self._open() as file:
            return self._parse(file, index)

    def line(self, index: int) -> int:
        """Line of a row, from 1."""
        return int(self.lines[index])

    def where(self, index: int) -> str:
        """File and line of a row."""
        return f"{self.path}:{self.lines[index]}"

    def _open(self) -> BinaryIO:
        if _stamp(self.path) != self.stamp:
            raise InputError(f"{self.path} changed while it was being read.", hint="Start again.")
        return self.path.open("rb")

    def _parse(self, file: BinaryIO, index: int) -> Mapping[str, Any]:
        start, end = map(int, self.spans[index])
        if end - start > _LONGEST:
            raise InputError(
                f"{self.where(index)}: the row has {(end - start) / 2**20:,.0f} MiB; "
                f"{_LONGEST >> 20} are read.",
                hint="Is it one line that should be many?",
            )
        file.seek(start)
        text = _decode(file.read(end - start), self.where(index), start)
        try:
            row = _DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            raise _malformed(error, self.path, self.line(index)) from None
        if not isinstance(row, dict):
            raise InputError(
                f"{self.where(index)}: the row is {kind_of(row)}; an object is needed.",
                hint='A row looks like {"prompt": "…", "completion": "…"}.',
            )
        return row


def open_json(path: Path) -> JsonRows:
    """Find the rows of a file; their content is checked when they are read.

    A file that starts with ``[`` is one JSON document whatever its name; a ``.json`` file whose
    first line is a whole object, with more lines after it, is JSON Lines.

    Raises
    ------
    InputError
        If the file is no UTF-8 JSON, or its document holds no list of rows.
    """
    stamp = _stamp(path)
    with path.open("rb") as file:
        head = file.read(4096)
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{path} is encoded as UTF-16.", hint="Save it as UTF-8.")
        start = len(_BOM) if head.startswith(_BOM) else 0
        is_json = path.suffix.lower() == ".json"
        first = head[start:].lstrip()[:1]
        if first == b"[" or (is_json and not _starts_with_lines(file, start)):
            notes = () if is_json else (f"{path.name} is one JSON array, not JSON Lines.",)
            file.seek(start)
            text = _decode(file.read(), str(path), start)
            spans, more = _document(text, path)
            places = _byte_spans(text, spans, start)
            lines = _line_numbers(text, spans)
            return JsonRows(path, places, lines, notes + more, stamp)
        notes = (f"{path.name} holds JSON Lines although it is called .json.",) if is_json else ()
        return JsonRows(path, *_lines(file, start), notes, stamp)


def _stamp(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def _decode(data: bytes, where: str, offset: int) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: byte {offset + error.start} (0x{data[error.start]:02x}) is not UTF-8.",
            hint="Save the file as UTF-8.",
        ) from None


def _malformed(error: Exception, path: Path, line: int) -> InputError:
    if isinstance(error, json.JSONDecodeError):
        where = f"{path}:{line + error.lineno - 1}"
        what = f"not JSON at column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"
    else:
        where = f"{path}:{line}"
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    return InputError(
        f"{where}: {what}.", hint="Each row is one JSON object, in JSON Lines one a line."
    )


# --- JSON Lines ------------------------------------------------------------------------------


def _lines(file: BinaryIO, start: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    file.seek(start)
    spans, lines = array("q"), array("q")
    number, goes_on = 1, False
    for raw in iter(partial(file.readline, _LONGEST + 1), b""):
        content = raw.strip()
        if content:
            first = start + raw.index(content)
            last = first + len(content)
            if goes_on and lines and lines[-1] == number:
                spans[-1] = last
            else:
                spans.extend((first, last))
                lines.append(number)
        start += len(raw)
        # A line that is longer than any row comes in pieces, and is one row still.
        goes_on = not raw.endswith(b"\n")
        number += not goes_on
    return np.array(spans, np.int64).reshape(-1, 2), np.array(lines, np.int64)


def _starts_with_lines(file: BinaryIO, start: int) -> bool:
    file.seek(start)
    whole = False
    for raw in file:
        if raw.strip():
            if whole:
                return True
            try:
                whole = isinstance(_DECODER.decode(raw.decode()), dict)
            except (ValueError, RecursionError):
                return False
            if not whole:
                return False
    return False


# --- one document ----------------------------------------------------------------------------


def _document(text: str, path: Path) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    try:
        return _find_rows(text, path)
    except (ValueError, RecursionError) as error:
        raise _malformed(error, path, 1) from None


def _find_rows(text: str, path: Path) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    start = _skip(text, 0)
    if start == len(text):
        return [], ()
    if text[start] == "[":
        spans, end = _array(text, start)
        _nothing_after(text, end)
        return spans, ()
    value, end = _DECODER.raw_decode(text, start)
    _nothing_after(text, end)
    if not isinstance(value, dict):
        raise InputError(f"{path} holds {kind_of(value)}; a list of rows is needed.")
    container = next((key for key in _CONTAINERS if isinstance(value.get(key), list)), None)
    if container is None or match_shape(value) is not None:
        return [(start, end)], ()
    others = [key for key in value if key != container]
    note = f"Rows were read from '{container}' of {path.name}"
    note += f"; its {', '.join(map(repr, others))} was not read." if others else "."
    return _array(text, _member(text, start, container))[0], (note,)


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _nothing_after(text: str, end: int) -> None:
    end = _skip(text, end)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)


def _array(text: str, start: int) -> tuple[list[tuple[int, int]], int]:
    spans: list[tuple[int, int]] = []
    position = _skip(text, start + 1)
    if text[position : position + 1] == "]":
        return spans, position + 1
    while True:
        _, end = _DECODER.raw_decode(text, position)
        spans.append((position, end))
        position = _skip(text, end)
        mark = text[position : position + 1]
        if mark == "]":
            return spans, position + 1
        if mark != ",":
            raise json.JSONDecodeError("Expecting ',' or ']'", text, position)
        position = _skip(text, position + 1)


def _member(text: str, start: int, name: str) -> int:
    # The object is known to be well formed and to have the key.
    position = _skip(text, start + 1)
    while True:
        key, end = _DECODER.raw_decode(text, position)
        position = _skip(text, _skip(text, end) + 1)
        if key == name:
            return position
        _, end = _DECODER.raw_decode(text, position)
        position = _skip(text, _skip(text, end) + 1)


def _line_numbers(text: str, spans: list[tuple[int, int]]) -> NDArray[np.int64]:
    starts = [first for first, _ in spans]
    newlines = [text.count("\n", a, b) for a, b in itertools.pairwise((0, *starts))]
    return np.cumsum(newlines, dtype=np.int64) + 1


def _byte_spans(text: str, spans: list[tuple[int, int]], offset: int) -> NDArray[np.int64]:
    places = np.array(spans, np.int64).reshape(-1, 2)
    if text.isascii() or not spans:
        return places + offset
    edges = places.ravel()
    sizes = [len(text[a:b].encode()) for a, b in itertools.pairwise((0, *edges))]
    return (np.cumsum(sizes, dtype=np.int64) + offset).reshape(-1, 2)
