"""Reading a report back from disk. The file may be anybody's, so nothing in it is trusted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from gradian_core.errors import InputError
from gradian_core.report.model import SCHEMA_VERSION, Report
from gradian_core.report.scores import ScoreTable

__all__ = ["load_report"]

_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})", re.ASCII)


def load_report(path: Path) -> Report:
    """Read a report from its folder or its ``report.json``; see :meth:`Report.load`."""
    file = path / "report.json" if path.is_dir() else path
    body = _read_json(file)
    _refuse_other_versions(body.get("schema_version"), file)
    try:
        report = Report.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise _damaged(file, f"{where}: {first['msg']}") from error

    table, wanted = file.with_name("scores.csv"), report.scores_file
    if wanted is None:
        if table.exists():
            return _with_note(report, f"{table.name} is of another run and was not read.")
        return report
    if not table.exists():
        return _with_note(
            report, f"{table.name} is missing, so only the scores listed in the report are known."
        )
    scores = ScoreTable.read_csv(table)
    loaded = report.with_scores(scores)
    if loaded.scores_file != wanted:
        why = (
            f"it has {len(scores):,} rows in place of {wanted.n_rows:,}"
            if len(scores) != wanted.n_rows
            else "its content is another one"
        )
        raise _foreign(table, f"is not the one that was written with {file.name}: {why}")
    if sorted(scores.row.tolist()) != list(range(report.n_examples)):
        raise _foreign(table, f"does not have each of the {report.n_examples:,} training rows once")
    return loaded


def _with_note(report: Report, note: str) -> Report:
    return report.model_copy(update={"notes": (*report.notes, note)})


def _foreign(table: Path, why: str) -> InputError:
    return InputError(
        f"{table} {why}.", hint="Copy both files of one run, or run gradian attribute again."
    )


def _read_json(file: Path) -> dict[str, Any]:
    def refuse_constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not JSON")

    try:
        body = json.loads(file.read_bytes().decode("utf-8-sig"), parse_constant=refuse_constant)
    except FileNotFoundError as error:
        raise InputError(
            f"There is no report at {file}.",
            hint="Give the folder that gradian attribute or gradian diagnose wrote with --out.",
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(file, str(error)) from error
    if not isinstance(body, dict):
        raise _damaged(file, "the outermost value is not an object")
    return body


def _refuse_other_versions(version: object, file: Path) -> None:
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if match is None:
        raise _damaged(file, "it has no schema_version")
    theirs = (int(match[1]), int(match[2]))
    ours = tuple(int(part) for part in SCHEMA_VERSION.split("."))
    if theirs > ours:
        raise InputError(
            f"{file} has schema version {version}; this Gradian reads up to {SCHEMA_VERSION}.",
            hint="Upgrade with: pip install --upgrade gradian-ml.",
        )


def _damaged(file: Path, why: str) -> InputError:
    return InputError(
        f"{file} is not a Gradian report: {why}.",
        hint="Run gradian attribute again to write it anew.",
    )
