"""Files with damaged rows, through the whole audit."""

from __future__ import annotations

import json

import pytest

from gradian_core.audit import samples
from gradian_core.config.models import Config
from gradian_core.errors import InputError
from gradian_core.flows.diagnose import diagnose

ROWS = [json.dumps(row) for row in samples.items(300)]


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.mark.parametrize(("bad", "severity"), [(1, "high"), (40, "high"), (41, "critical")])
def test_damaged_rows_lead_and_the_rest_is_audited(tmp_path, bad, severity):
    duplicates = ROWS[:60]
    data = write(tmp_path / "t.jsonl", [*ROWS, *["{"] * bad, *duplicates])
    report = diagnose(Config(dataset=data))
    first = report.findings[0]
    assert (first.id, first.severity) == ("data.unreadable_rows", severity)
    assert "data.duplicates" in {finding.id for finding in report.findings}
    assert first.evidence["lines"] == [301 + i for i in range(min(bad, 5))]
    assert str(tmp_path) not in report.to_json()
    assert report.n_examples == 360


def test_damaged_eval_rows(tmp_path):
    data = write(tmp_path / "t.jsonl", ROWS)
    evals = write(tmp_path / "e.jsonl", [*ROWS[:1], "no row"])
    report = diagnose(Config(dataset=data, eval_dataset=evals))
    [found] = [f for f in report.findings if f.id == "data.unreadable_rows"]
    assert found.title == "1 eval row of 2 (50.0%) cannot be read"


def test_what_is_left_out_is_noted_even_if_the_check_is_not_wanted(tmp_path):
    data = write(tmp_path / "t.jsonl", [*ROWS, "{"])
    report = diagnose(Config(dataset=data), ignore=["data.unreadable_rows"])
    assert "1 of 301 rows of t.jsonl cannot be read and were left out." in report.notes


def test_nothing_readable_is_refused(tmp_path):
    with pytest.raises(InputError, match="None of the 2 rows"):
        diagnose(Config(dataset=write(tmp_path / "t.jsonl", ["{", "{"])))
