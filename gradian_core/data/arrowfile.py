"""Rows in folders that ``save_to_disk`` of Hugging Face *datasets* wrote.

They are Arrow stream files, named in order by ``state.json``. *datasets* always brings pyarrow,
so pyarrow alone reads them, without the import time of the rest.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradian_core.errors import InputError, MissingExtraError

__all__ = ["ArrowRows", "open_saved"]

_BATCH_ROWS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class ArrowRows:
    """Rows of a saved data set, mapped into memory and converted on demand.

    Parameters
    ----------
    path
        Folder of the data set.
    table
        ``pyarrow.Table``.
    notes
        What had to be guessed.
    """

    path: Path
    table: Any
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for batch in self.table.to_batches(max_chunksize=_BATCH_ROWS):
            yield from batch.to_pylist()

    def __getitem__(self, index: int) -> Mapping[str, Any]:
        row: Mapping[str, Any] = self.table.slice(index, 1).to_pylist()[0]
        return row

    def attempts(self) -> Iterator[Mapping[str, Any] | InputError]:
        """Stream all rows; a table has no malformed ones."""
        return iter(self)

    def without(self, rows: Collection[int]) -> ArrowRows:
        """Return the rows without some of them, by index."""
        gone = set(rows)
        return replace(self, table=self.table.take([i for i in range(len(self)) if i not in gone]))

    def line(self, index: int) -> None:  # noqa: ARG002
        """Rows of an Arrow file have no line."""
        return

    def where(self, index: int) -> str:
        """Folder and row, counted from 0."""
        return f"{self.path}[{index}]"


def open_saved(path: Path) -> ArrowRows:
    """Open a folder that ``save_to_disk`` wrote; of several splits, ``train`` is taken.

    Raises
    ------
    InputError
        If the folder is not such a folder, or is damaged.
    MissingExtraError
        If pyarrow is not installed.
    """
    notes: tuple[str, ...] = ()
    if (path / "dataset_dict.json").is_file():
        splits = _read_json(path / "dataset_dict.json").get("splits")
        names = [s for s in splits if isinstance(s, str)] if isinstance(splits, list) else []
        if len(names) != 1 and "train" not in names:
            raise InputError(
                f"{path} holds the splits {', '.join(names) or '(none)'}, and none is 'train'.",
                hint="Name the folder of the split that you mean.",
            )
        split = "train" if "train" in names else names[0]
        if len(names) > 1:
            notes = (f"{path.name} holds the splits {', '.join(names)}; '{split}' was read.",)
        path = path / split
    if not (path / "state.json").is_file():
        raise _not_a_data_set(path)
    state = _read_json(path / "state.json")
    try:
        pyarrow = importlib.import_module("pyarrow")
        importlib.import_module("pyarrow.ipc")
    except ImportError:
        raise MissingExtraError(
            "Reading a save_to_disk folder", ("pyarrow",), extra="data"
        ) from None
    table = _tables(pyarrow, path, state.get("_data_files"))
    if state.get("_indices_data_files"):
        # A selection or shuffle that old versions saved beside the rows, not into them.
        table = table.take(_tables(pyarrow, path, state["_indices_data_files"])["indices"])
    return ArrowRows(path, table, notes)


def _tables(pyarrow: Any, folder: Path, files: object) -> Any:
    listed = files if isinstance(files, list) else []
    names = [file.get("filename") for file in listed if isinstance(file, dict)]
    if not names:
        raise InputError(f"{folder / 'state.json'} names no data files.", hint="Save it again.")
    tables = []
    for name in names:
        # The name comes from a file that is not trusted: it may not lead out of the folder.
        file = folder / Path(str(name)).name
        try:
            with pyarrow.memory_map(str(file)) as mapped:
                tables.append(pyarrow.ipc.open_stream(mapped).read_all())
        except (OSError, pyarrow.ArrowException) as error:
            raise InputError(
                f"{file} cannot be read: {str(error).splitlines()[0]}.",
                hint="Save the data set again (if it came by Git LFS, run 'git lfs pull').",
            ) from None
    return pyarrow.concat_tables(tables)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}.", hint="Save the data set again.") from None
    if not isinstance(value, dict):
        raise InputError(f"{path} holds no object.", hint="Save the data set again.")
    return value


def _not_a_data_set(path: Path) -> InputError:
    inside = sorted(p.name for p in path.iterdir() if p.suffix in {".json", ".jsonl", ".ndjson"})
    return InputError(
        f"{path} is a folder, but not one that save_to_disk wrote (no state.json).",
        hint=f"Name a file in it: {', '.join(inside[:5])}." if inside else None,
    )
