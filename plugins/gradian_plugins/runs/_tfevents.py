"""TensorBoard event files: scalars, and the arguments that transformers writes as text.

An event file is a row of records (length, its checksum, data, its checksum), each a protobuf
message. The few fields that matter are read here; TensorBoard itself brings forty megabytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gradian_core.errors import InputError

from ._files import Remarks

__all__ = ["Events", "read_events"]

_MOST_BYTES = 256 << 20
_MOST_RECORD = 4 << 20
_MOST_RECORDS = 2_000_000
_LENGTH = 12
_CHECKSUM = 4
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Field = tuple[int, int, int | bytes]


@dataclass(slots=True)
class Events:
    """What an event file says.

    Parameters
    ----------
    scalars
        ``(step, tag, value)`` in the order of the file.
    texts
        Text by tag; the last one of each.
    """

    scalars: list[tuple[int, str, float]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)


def read_events(path: Path, remarks: Remarks) -> Events:
    """Read an event file up to its end or to its first damaged record.

    A trainer that was killed leaves half a record at the end.

    Raises
    ------
    InputError
        If it is larger than 256 MiB or does not begin with an event.
    """
    if path.stat().st_size > _MOST_BYTES:
        raise InputError(f"{path} is larger than {_MOST_BYTES >> 20} MiB.")
    events = Events()
    count = 0
    try:
        for record in _records(path):
            count += 1
            if count > _MOST_RECORDS:
                remarks.note(f"{path.name}: events after {_MOST_RECORDS:,} were not read.")
                break
            _take(record, events)
    except ValueError as error:
        if not count:
            raise InputError(f"{path} is no TensorBoard event file: {error}.") from error
        remarks.note(f"{path.name} is damaged after {count:,} events; the rest was not read.")
    return events


def _records(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while start := file.read(_LENGTH):
            if len(start) < _LENGTH:
                raise ValueError("it ends inside a record")
            (length,) = struct.unpack_from("<Q", start)
            if length > _MOST_RECORD:
                raise ValueError(f"a record claims {length} bytes")
            data = file.read(length + _CHECKSUM)
            if len(data) < length + _CHECKSUM:
                raise ValueError("it ends inside a record")
            yield data[:length]


def _take(record: bytes, events: Events) -> None:
    """Event: 2 = step, 5 = summary; Summary: 1 = value."""
    step = 0
    for number, _, content in _fields(record):
        if number == 2 and isinstance(content, int):
            step = content
        elif number == 5 and isinstance(content, bytes):
            for inner, _, value in _fields(content):
                if inner == 1 and isinstance(value, bytes):
                    _take_value(value, step, events)


def _take_value(message: bytes, step: int, events: Events) -> None:
    """Value: 1 = tag, 2 = simple_value, 8 = tensor."""
    tag, number_, text = "", None, None
    for number, wire, content in _fields(message):
        if number == 1 and isinstance(content, bytes):
            tag = content.decode("utf-8", errors="replace")
        elif number == 2 and wire == _FIXED32 and isinstance(content, bytes):
            (number_,) = struct.unpack("<f", content)
        elif number == 8 and isinstance(content, bytes):
            number_, text = _tensor(content)
    if tag and number_ is not None:
        events.scalars.append((step, tag, float(number_)))
    elif tag and text is not None:
        events.texts[tag] = text


def _tensor(message: bytes) -> tuple[float | None, str | None]:
    """Tensor: 1 = dtype, 4 = content, 5 = floats, 6 = doubles, 8 = strings."""
    dtype, raw, text = 0, b"", None
    for number, _, content in _fields(message):
        if number == 1 and isinstance(content, int):
            dtype = content
        elif number in (4, 5, 6) and isinstance(content, bytes):
            raw = content
        elif number == 8 and isinstance(content, bytes):
            text = content.decode("utf-8", errors="replace")
    if text is not None:
        return None, text
    form = {1: "<f", 2: "<d"}.get(dtype)
    if form is None or len(raw) < struct.calcsize(form):
        return None, None
    return struct.unpack_from(form, raw)[0], None


def _fields(message: bytes) -> Iterator[Field]:
    """Yield ``(number, wire type, content)`` of a protobuf message."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        wire = key & 7
        if wire == _VARINT:
            value, position = _varint(message, position)
            yield key >> 3, wire, value
            continue
        if wire == _BYTES:
            size, position = _varint(message, position)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"a field of the unknown type {wire}")
        if position + size > len(message):
            raise ValueError("a field is longer than its message")
        yield key >> 3, wire, message[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("a number has no end")
