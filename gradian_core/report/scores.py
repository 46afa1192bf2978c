"""The score of every training row: ``scores.csv``."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradian_core.errors import InputError

__all__ = ["COLUMNS", "ScoreTable"]

COLUMNS = ("example_id", "row", "cluster", "score", "net", "predicted_loss_delta_if_removed")

_FORMULA = ("=", "+", "-", "@", "'")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreTable:
    """Scores in the order of the data set, as columns of equal length *n*.

    Parameters
    ----------
    example_id
        Example ids.
    row
        ``(n,)`` int64: row numbers in the file.
    cluster
        Key of each row's cluster, one line
        (:func:`gradian_core.attribution.clusters.cluster_keys`).
    score
        ``(n,)`` float64; 0 for skipped rows. The sign convention is that of
        :mod:`gradian_core.protocols`. It ranks the rows.
    net
        ``(n,)`` float64: mean of the scores for each item. The same as ``score`` under
        ``evaluation.aggregation: mean``.
    predicted_loss_delta_if_removed
        ``(n,)`` float64: ``net`` divided by *n*.
    """

    example_id: tuple[str, ...]
    row: NDArray[np.int64]
    cluster: tuple[str, ...]
    score: NDArray[np.float64]
    net: NDArray[np.float64]
    predicted_loss_delta_if_removed: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.example_id)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreTable):
            return NotImplemented
        return (
            self.example_id == other.example_id
            and self.cluster == other.cluster
            and np.array_equal(self.row, other.row)
            and np.array_equal(self.score, other.score)
            and np.array_equal(self.net, other.net)
            and np.array_equal(
                self.predicted_loss_delta_if_removed, other.predicted_loss_delta_if_removed
            )
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    def to_csv(self) -> str:
        """Return the table as CSV; floats by ``repr``, so that they come back bit by bit."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        columns = (
            self.example_id,
            self.row.tolist(),
            map(_guard, self.cluster),
            map(repr, self.score.tolist()),
            map(repr, self.net.tolist()),
            map(repr, self.predicted_loss_delta_if_removed.tolist()),
        )
        writer.writerows(zip(*columns, strict=True))
        return out.getvalue()

    @classmethod
    def read_csv(cls, path: Path) -> ScoreTable:
        """Read a table that :meth:`to_csv` wrote.

        Raises
        ------
        InputError
            If the file cannot be read or a line is damaged; names the line.
        """
        try:
            text = path.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise _damaged(path, 1, str(error)) from error
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        rows: list[tuple[str, int, str, float, float, float]] = []
        try:
            if tuple(next(reader, ())) != COLUMNS:
                raise ValueError(f"the first line should be {','.join(COLUMNS)}")
            for cells in reader:
                identifier, row, cluster, *numbers = cells
                score, net, delta = map(_finite, numbers)
                rows.append((identifier, int(row), _unguard(cluster), score, net, delta))
            columns = tuple(zip(*rows, strict=True)) if rows else ((),) * len(COLUMNS)
            return cls(
                example_id=columns[0],
                row=np.array(columns[1], dtype=np.int64),
                cluster=columns[2],
                score=np.array(columns[3], dtype=np.float64),
                net=np.array(columns[4], dtype=np.float64),
                predicted_loss_delta_if_removed=np.array(columns[5], dtype=np.float64),
            )
        except (csv.Error, ValueError, OverflowError) as error:
            raise _damaged(path, reader.line_num, str(error)) from error


def _damaged(path: Path, line: int, why: str) -> InputError:
    return InputError(
        f"{path}:{line}: not a table of scores: {why}.",
        hint="Run gradian attribute again to write it anew.",
    )


def _finite(cell: str) -> float:
    value = float(cell)
    if not np.isfinite(value):
        raise ValueError(f"{cell} is not a finite number")
    return value


def _guard(name: str) -> str:
    """Keep a spreadsheet from running a cluster's name, which a file chose, as a formula."""
    return f"'{name}" if name.startswith(_FORMULA) and not _is_number(name) else name


def _unguard(cell: str) -> str:
    return cell.removeprefix("'")


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
