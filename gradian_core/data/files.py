"""Data sets: files and rows in memory, as a lazily read sequence of examples."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self, overload

from gradian_core.data.arrowfile import open_saved
from gradian_core.data.example import Example
from gradian_core.data.jsonfile import open_json
from gradian_core.data.rejected import Rejected
from gradian_core.data.rows import parse_row, used_keys
from gradian_core.data.turns import kind_of
from gradian_core.errors import InputError

__all__ = ["Dataset", "RowSource", "Visit", "dataset_from_rows", "load_dataset"]

_SUFFIXES = (".jsonl", ".ndjson", ".json")
_READ = "Read are .jsonl, .ndjson and .json files, and folders written by save_to_disk."
_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_WEIGHT_KEYS = ("weight", "loss_weight", "train")
_NAMED = 5
"""Unreadable rows that are told with place and reason; the rest is counted."""


Visit = Callable[[Mapping[str, Any], Example], None]
"""Takes a row as it is written, and as it was parsed."""


class RowSource(Protocol):
    """Where rows come from."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was guessed about the source, as sentences."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Mapping[str, Any]]: ...
    def __getitem__(self, index: int, /) -> Mapping[str, Any]: ...

    def attempts(self) -> Iterator[Mapping[str, Any] | InputError]:
        """Stream all rows, and for those that are no objects why not."""

    def without(self, rows: Collection[int]) -> Self:
        """Return the source without some of its rows, by index."""

    def line(self, index: int) -> int | None:
        """Return the line of a row, from 1, where rows have lines."""

    def where(self, index: int) -> str:
        """Return the place of a row, for messages."""


class Dataset(Sequence[Example]):
    """Examples, parsed when they are asked for, so that memory does not grow with the text.

    Every row has been read and checked once when this exists.

    Parameters
    ----------
    source
        The rows.
    path
        File or folder; None for rows from memory.
    visit
        Called with each row, as it is written and as it was parsed, while they are checked.
    lenient
        Leave out rows that cannot be read, as if they were not there, instead of refusing all.

    Attributes
    ----------
    fingerprint : str
        SHA-256 (hex) over the content of all rows in their order: turns, text and tools, as in
        the example ids; declared clusters and unused keys are not content.
    notes : tuple[str, ...]
        What was guessed or left unread, as sentences.
    rejected : Rejected
        What was left out.

    Raises
    ------
    InputError
        At the first row that cannot be read; if lenient, only if none can. For a data set
        without rows.
    """

    __slots__ = ("_source", "fingerprint", "notes", "path", "rejected")

    def __init__(
        self,
        source: RowSource,
        *,
        path: Path | None = None,
        visit: Visit | None = None,
        lenient: bool = False,
    ) -> None:
        self.path = path
        digest = hashlib.sha256()
        unused: Counter[str] = Counter()
        weightless = 0
        refused = array("q")
        first: list[InputError] = []
        for index, row in enumerate(source.attempts()):
            try:
                if isinstance(row, InputError):
                    raise row
                example = parse_row(row, index - len(refused), source.where(index))
            except InputError as error:
                if not lenient:
                    raise
                refused.append(index)
                if len(first) < _NAMED:
                    first.append(error)
                continue
            _add_content(digest, example)
            if visit is not None:
                visit(row, example)
            unused.update(str(k) for k in row.keys() - used_keys(row) if row[k] is not None)
            weightless += any(
                _has_no_weight(turn.extra) for turn in example.turns if turn.role == "assistant"
            )
        if not len(source):
            name = path or "The data set"
            raise InputError(f"{name} holds no rows.", hint="Is it the right file, and complete?")
        self.rejected = _rejected(source, refused, first, path)
        self._source = source.without(refused) if refused else source
        self.fingerprint = digest.hexdigest()
        self.notes = (
            *source.notes,
            *_left_out(self.rejected, path),
            *_notes(unused, weightless, len(self)),
        )

    def __len__(self) -> int:
        return len(self._source)

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Example, ...]: ...
    def __getitem__(self, index: int | slice) -> Example | tuple[Example, ...]:
        """Parse one row, or several."""
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        row = range(len(self))[index]
        return parse_row(self._source[row], row, self.where(row))

    def __iter__(self) -> Iterator[Example]:
        """Stream all rows."""
        for index, row in enumerate(self._source):
            yield parse_row(row, index, self._source.where(index))

    def raw(self) -> Iterator[Mapping[str, Any]]:
        """Stream all rows as they are written, unparsed."""
        return iter(self._source)

    def line(self, row: int) -> int | None:
        """Return the line of a row in its file, from 1; None where rows have no lines."""
        return self._source.line(row)

    def where(self, row: int) -> str:
        """Return the place of a row for messages: ``train.jsonl:12``, or ``rows[11]``."""
        return self._source.where(row)


@dataclass(frozen=True, slots=True, eq=False)
class _MemoryRows:
    rows: tuple[Mapping[str, Any], ...]
    name: str
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> Mapping[str, Any]:
        return self.rows[index]

    def attempts(self) -> Iterator[Mapping[str, Any] | InputError]:
        return iter(self.rows)

    def without(self, rows: Collection[int]) -> _MemoryRows:
        gone = set(rows)
        kept = tuple(row for i, row in enumerate(self.rows) if i not in gone)
        return replace(self, rows=kept)

    def line(self, index: int) -> None:  # noqa: ARG002
        return None

    def where(self, index: int) -> str:
        return f"{self.name}[{index}]"


def load_dataset(path: str | Path, *, visit: Visit | None = None, lenient: bool = False) -> Dataset:
    """Open a data set: a ``.jsonl``, ``.ndjson`` or ``.json`` file, or a ``save_to_disk`` folder.

    A ``.json`` file may hold a list of rows, one row, or an object with the rows under ``train``
    or ``data``. Blank lines are skipped. Text is UTF-8, with or without a byte order mark.

    Parameters
    ----------
    path
        File or folder.
    visit
        As for :class:`Dataset`: saves a second pass over the rows.
    lenient
        As for :class:`Dataset`. A file that is one JSON document has no rows to save if it is
        malformed.

    Raises
    ------
    InputError
        For a missing or unsuitable file, and for the first row that cannot be read (if lenient:
        where none can), with file and line.
    MissingExtraError
        For a folder, if pyarrow is not installed.
    """
    path = Path(path)
    try:
        if path.is_dir():
            return Dataset(open_saved(path), path=path, visit=visit, lenient=lenient)
        if not path.exists():
            raise _missing(path)
        _check_kind(path)
        return Dataset(open_json(path), path=path, visit=visit, lenient=lenient)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None


def dataset_from_rows(rows: Iterable[Mapping[str, Any]], *, source: str = "rows") -> Dataset:
    """Return a data set of rows in memory, in any of the shapes that files may have.

    Parameters
    ----------
    rows
        The rows, in order.
    source
        What to call them in messages, as in ``rows[3]``.
    """
    kept = tuple(rows)
    for index, row in enumerate(kept):
        if not isinstance(row, Mapping):
            raise InputError(f"{source}[{index}] is {kind_of(row)}; a mapping is needed.")
    return Dataset(_MemoryRows(kept, source))


def _add_content(digest: Any, example: Example) -> None:
    # Lengths in front keep the parts of neighbouring rows apart.
    parts = [part for turn in example.turns for part in (turn.role, turn.content)]
    if example.text is not None:
        parts.append(example.text)
    extras = [dict(turn.extra) for turn in example.turns], [dict(t) for t in example.tools]
    if any(extras[0]) or extras[1]:
        parts.append(json.dumps(extras, sort_keys=True))
    for number in (len(example.turns), len(parts)):
        digest.update(number.to_bytes(8, "big"))
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)


def _rejected(
    source: RowSource, refused: Sequence[int], first: Sequence[InputError], path: Path | None
) -> Rejected:
    if not refused:
        return Rejected(total=len(source))
    if len(refused) == len(source):
        raise InputError(
            f"None of the {len(source):,} rows can be read. {first[0].message}"
            if len(source) > 1
            else first[0].message,
            hint=first[0].hint,
        )
    lines = (source.line(index) for index in refused[: len(first)])
    return Rejected(
        count=len(refused),
        total=len(source),
        # A report does not depend on where the file lies.
        reasons=tuple(
            error.message if path is None else error.message.replace(str(path), path.name)
            for error in first
        ),
        lines=tuple(line for line in lines if line is not None),
    )


def _left_out(rejected: Rejected, path: Path | None) -> Iterator[str]:
    if rejected.count:
        name = path.name if path is not None else "the data set"
        yield (
            f"{rejected.count:,} of {rejected.total:,} rows of {name} cannot be read and were "
            "left out."
        )


def _has_no_weight(extra: Mapping[str, Any]) -> bool:
    return any(key in extra and not extra[key] for key in _WEIGHT_KEYS)


def _notes(unused: Counter[str], weightless: int, rows: int) -> Iterator[str]:
    if unused:
        names = ", ".join(f"{key!r} ({count})" for key, count in sorted(unused.items())[:10])
        rest = f" and {len(unused) - 10} more" if len(unused) > 10 else ""
        yield f"Keys that no row shape uses were left unread (rows): {names}{rest}."
    if weightless:
        yield (
            f"{weightless} of {rows} rows give an assistant message no weight in the loss; it is "
            "supervised here all the same."
        )


def _check_kind(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path} is not a regular file.", hint=_READ)
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(f"{path}: {suffix or 'nameless'} files are not read.", hint=_READ)
    with path.open("rb") as file:
        if file.read(64).startswith(b"version https://git-lfs"):
            raise InputError(
                f"{path} is a Git LFS pointer, not the data itself.", hint="Run 'git lfs pull'."
            )


def _missing(path: Path) -> InputError:
    if path.is_symlink():
        return InputError(f"{path} is a link that leads nowhere.")
    if not path.suffix and _HUB_ID.fullmatch(str(path)):
        return InputError(
            f"There is no file or folder {path}, and ids of the Hugging Face hub are not resolved.",
            hint=f"Save it first: datasets.load_dataset('{path}', split='train')"
            f".save_to_disk('{path.name}').",
        )
    folder = path.parent
    if not folder.is_dir():
        return InputError(f"There is no folder {folder} (looking for {path.name}).")
    names = [entry.name for entry in folder.iterdir()]
    close = difflib.get_close_matches(path.name, names, n=3)
    return InputError(
        f"There is no file {path}.", hint=f"Did you mean {' or '.join(close)}?" if close else None
    )
