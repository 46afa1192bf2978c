"""The rows that an accusation names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradian_core.data.files import Dataset
from gradian_core.errors import InputError, UsageError
from gradian_core.report.model import Report
from gradian_core.report.scores import ScoreTable

__all__ = ["Accused", "accused_clusters", "accused_ids", "read_ids"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accused:
    """Rows to be left out.

    Parameters
    ----------
    rows
        Their places.
    described
        What they are, for people.
    """

    rows: frozenset[int]
    described: tuple[str, ...]

    def by_harm(self, report: Report) -> list[int]:
        """Return the places, the most harmful row first."""
        scores = _table(report).score
        return sorted(self.rows, key=lambda row: (scores[row], row))

    def refuse_other_data(self, dataset: Dataset, report: Report) -> None:
        """Refuse a data set that is not the one that was scored.

        Raises
        ------
        UsageError
            If the ids differ.
        """
        if tuple(example.id for example in dataset) != _table(report).example_id:
            raise UsageError(
                f"{dataset.path} is not the data set of the report: its rows differ.",
                hint="Give the data set that was attributed, unchanged.",
            )


def _table(report: Report) -> ScoreTable:
    if report.scores is None:
        raise UsageError(
            "The report has no scores of training rows.",
            hint="Give the folder that gradian attribute wrote, with its scores.csv.",
        )
    return report.scores


def accused_clusters(report: Report, names: Sequence[str] = ()) -> Accused:
    """Accuse clusters of a report.

    Parameters
    ----------
    report
        With scores.
    names
        Keys or labels of clusters; empty for all that stand out.

    Raises
    ------
    UsageError
        If a name is unknown, or none is given and none stands out.
    """
    table = _table(report)
    by_name = {name: c for c in report.clusters for name in (c.label, c.cluster)}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise UsageError(
            f"--cluster: the report has no cluster {unknown[0]!r}.",
            hint=f"Its clusters: {', '.join(c.cluster for c in report.clusters[:20])}.",
        )
    chosen = [by_name[name] for name in names] or [c for c in report.clusters if c.stands_out]
    if not chosen:
        raise UsageError(
            "No cluster of the report stands out, so it accuses nobody.",
            hint="Name clusters with --cluster, or rows with --ids.",
        )
    keys = {cluster.cluster for cluster in chosen}
    return Accused(
        rows=frozenset(place for place, key in enumerate(table.cluster) if key in keys),
        described=tuple(f"cluster {cluster.label}" for cluster in chosen),
    )


def accused_ids(report: Report, ids: Collection[str], source: str) -> Accused:
    """Accuse rows by their ids.

    Raises
    ------
    UsageError
        If an id is unknown.
    """
    places = {name: place for place, name in enumerate(_table(report).example_id)}
    strange = [name for name in ids if name not in places]
    if strange or not ids:
        raise UsageError(
            f"{source}: there is no training row {strange[0]} in the report."
            if strange
            else f"{source} names no row.",
            hint="Give example ids as in scores.csv, one a line.",
        )
    return Accused(
        rows=frozenset(places[name] for name in ids),
        described=(f"{len(ids)} rows named in {source}",),
    )


def read_ids(path: Path) -> list[str]:
    """Read example ids, one a line; what follows a comma is passed over, and so is a head.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.", hint="Give a text file.") from error
    names = [line.split(",")[0].strip() for line in lines]
    return [name for name in dict.fromkeys(names) if name and name != "example_id"]
