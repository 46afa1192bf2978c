"""Where a finding stands, as a file and a line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gradian_core.data.files import Dataset
from gradian_core.report.model import FindingReport

__all__ = ["Place", "places"]


@dataclass(frozen=True, slots=True)
class Place:
    """A row of a file.

    Parameters
    ----------
    path
        The file, relative to the working folder where it lies in it.
    line
        Line from 1, None where rows have no lines.
    """

    path: Path
    line: int | None


def places(finding: FindingReport, dataset: Dataset | None, most: int) -> Iterator[Place]:
    """Yield where the rows of a finding stand, as far as the ids are of this data set.

    Parameters
    ----------
    finding
        The finding.
    dataset
        The training data.
    most
        Rows that are wanted at most.
    """
    if dataset is None or dataset.path is None:
        return
    path = relative(dataset.path)
    for identifier in finding.example_ids[:most]:
        row = identifier.rpartition("-")[2]
        # An id may be an eval row's, or a plugin's invention.
        if row.isdecimal() and int(row) < len(dataset) and dataset[int(row)].id == identifier:
            yield Place(path, dataset.line(int(row)))


def relative(path: Path) -> Path:
    """Return the path relative to the working folder if it lies in it, else absolute."""
    full = path.expanduser().resolve()
    here = Path.cwd()
    return full.relative_to(here) if full.is_relative_to(here) else full
