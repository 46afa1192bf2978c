"""Reading files that a stranger wrote: bounded, and every failure is said."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from gradian_core.errors import InputError
from gradian_core.files import refuse_lfs_pointer
from gradian_core.text import excerpt

__all__ = [
    "Remarks",
    "files_of",
    "finite",
    "head",
    "integer",
    "json_lines",
    "json_object",
    "json_value",
    "number",
    "text_of",
]

T = TypeVar("T")

_MOST_BYTES = 128 << 20
_MOST_VALUES = 4_000_000
_HEAD = 64 << 10
_MOST_FILES = 2000


@dataclass(slots=True)
class Remarks:
    """What a reader has to say about the files that it could not use."""

    notes: list[str] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    failures: int = 0

    def note(self, text: str) -> None:
        """Add a sentence, once."""
        if text not in self.notes:
            self.notes.append(text)

    def refuse(self, name: str, text: str) -> None:
        """Add a reason why the run cannot be judged; see ``RunArtifact.refusals``."""
        self.refusals.setdefault(name, text)
        self.note(text)

    def attempt(self, path: Path, read: Callable[[Path], T]) -> T | None:
        """Read a file; None and a remark if it is damaged or a Git-LFS pointer."""
        try:
            refuse_lfs_pointer(path)
        except InputError as error:
            self.refuse("file_is_lfs_pointer", str(error))
            return None
        except OSError as error:
            self.fail(f"{path} cannot be read: {error.strerror or error}.")
            return None
        try:
            return read(path)
        except InputError as error:
            self.fail(str(error))
        except OSError as error:
            self.fail(f"{path} cannot be read: {error.strerror or error}.")
        return None

    def fail(self, text: str) -> None:
        """Add what is wrong with a file."""
        self.failures += 1
        self.note(text)

    def insist(self, something: object, path: Path) -> None:
        """Raise if nothing was read and a damaged file is the reason.

        Raises
        ------
        InputError
            With the damage.
        """
        if not something and self.failures and not self.refusals:
            raise InputError(" ".join(self.notes))
        if not something and not self.refusals:
            raise InputError(f"{path} holds nothing that could be read as a run.")


def files_of(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a folder that match a pattern, sorted, two thousand at most."""
    found: list[Path] = []
    try:
        for entry in folder.glob(pattern):
            if entry.is_file():
                found.append(entry)
            if len(found) >= _MOST_FILES:
                break
    except OSError:
        return []
    return sorted(found)


def head(path: Path) -> str:
    """Return the first 64 KiB of a file as text, empty for one that cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(_HEAD)
    except OSError:
        return ""
    return data.decode("utf-8-sig", errors="replace")


def text_of(path: Path, limit: int) -> str:
    """Return a text file with line ends made plain; what is not UTF-8 is replaced.

    Raises
    ------
    InputError
        If it is larger than ``limit`` bytes.
    """
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise InputError(f"{path} is larger than {limit >> 20} MiB and was not read.")
    text = data.decode("utf-8-sig", errors="replace")
    return text.replace("\r\n", "\n")


def json_value(path: Path, limit: int = _MOST_BYTES) -> Any:
    """Return what a JSON file holds; NaN and Infinity, which transformers writes, are read.

    Raises
    ------
    InputError
        If it is too large, has too many values, is no UTF-8 or no JSON, or is nested too deeply.
    """
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise InputError(f"{path} is larger than {limit >> 20} MiB.")
    # a small file can hold millions of empty lists, each fifty times its size in memory
    if sum(map(data.count, (b",", b"[", b"{"))) > _MOST_VALUES:
        raise InputError(f"{path} holds more than {_MOST_VALUES:,} values.")
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8.") from error
    except RecursionError as error:
        raise InputError(f"{path} is not JSON that can be read: nested too deeply.") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {excerpt(str(error), 120)}.") from error


def json_object(path: Path, limit: int = _MOST_BYTES) -> dict[str, Any]:
    """Return the object of a JSON file.

    Raises
    ------
    InputError
        As :func:`json_value`, and if it is no object.
    """
    value = json_value(path, limit)
    if not isinstance(value, dict):
        raise InputError(f"{path} is not a JSON object.")
    return value


def json_lines(path: Path, remarks: Remarks, most: int = 1_000_000) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON Lines file; a line that is none is said and passed over."""
    bad: list[int] = []
    with path.open("rb") as file:
        for number_, raw in enumerate(iter(lambda: file.readline(_HEAD), b""), 1):
            if number_ > most:
                remarks.note(f"{path.name}: lines after {most:,} were not read.")
                break
            text = raw.decode("utf-8-sig" if number_ == 1 else "utf-8", errors="replace").strip()
            if not text:
                continue
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                value = None
            if isinstance(value, dict):
                yield value
            else:
                bad.append(number_)
    if bad:
        where = ", ".join(map(str, bad[:3])) + ("…" if len(bad) > 3 else "")
        remarks.note(f"{path.name}: {len(bad)} lines are no JSON objects (line {where}).")


def integer(value: object) -> int | None:
    """Return a whole number, None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def finite(value: object) -> float | None:
    """Return a finite number that may be written as text, None for anything else."""
    found = number(value)
    return found if found is not None and math.isfinite(found) else None


def number(value: object) -> float | None:
    """Return a number that may be written as text, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
