import json
import math
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_core.errors import InputError
from gradian_core.findings import Severity
from gradian_core.report.base import clean_text, limit_text, plain_json
from gradian_core.report.model import Report
from gradian_core.report.run_record import RunRecord
from gradian_core.report.schema import schema_text
from gradian_core.report.scores import ScoreTable

ROOT = Path(__file__).parents[2]


def save(report, folder):
    (folder / "report.json").write_text(report.to_json())
    if report.scores is not None:
        (folder / "scores.csv").write_text(report.scores.to_csv(), newline="")
    return folder


@pytest.mark.parametrize("kind", ["poisoned", "flat", "hostile"])
def test_comes_back_as_it_was(samples, tmp_path, kind):
    report = getattr(samples, kind)()
    folder = save(report, tmp_path)
    for path in (folder, str(folder), folder / "report.json"):
        assert Report.load(path) == report
    assert Report.load(folder).scores == report.scores


def test_comes_back_without_scores(samples, tmp_path):
    folder = save(samples.poisoned(attribution=None), tmp_path)
    assert Report.load(folder).scores is None


def test_is_ascii_sorted_and_free_of_nan(samples):
    text = samples.hostile().to_json()
    assert text.isascii()
    assert "\x1b" not in text

    def refuse(constant):
        raise AssertionError(constant)

    body = json.loads(text, parse_constant=refuse)
    assert text == json.dumps(body, indent=2, sort_keys=True) + "\n"
    assert body["findings"][0]["evidence"]["nested"] == {"inf": "inf", "set": [1]}
    assert body["capability"]["items"][1]["tuned_score"] is None
    assert body["capability"]["items"][0]["margin"] is None


def test_same_inputs_give_the_same_bytes(samples):
    assert samples.poisoned().to_json() == samples.poisoned().to_json()


@pytest.mark.parametrize("kind", ["poisoned", "flat", "hostile"])
def test_validates_against_the_published_schema(samples, kind):
    schema = json.loads((ROOT / "docs" / "report.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    body = json.loads(getattr(samples, kind)().to_json())
    validator.validate(body)
    body["clusters"][0]["n"] = "four"
    assert not validator.is_valid(body)


def test_published_schema_is_current():
    published = json.loads((ROOT / "docs" / "report.schema.json").read_text())
    assert published == json.loads(schema_text()), "run python -m gradian_core.report.schema"


def test_schema_command_writes_the_file(tmp_path):
    target = tmp_path / "schema.json"
    subprocess.run([sys.executable, "-m", "gradian_core.report.schema", str(target)], check=True)
    assert target.read_text() == schema_text()


def test_every_field_is_described():
    schema = json.loads(schema_text())
    for name, part in [("Report", schema), *schema["$defs"].items()]:
        for field, spec in part.get("properties", {}).items():
            assert spec.get("description"), f"{name}.{field}"


def test_reading_a_report_imports_nothing_heavy():
    code = (
        "import sys, gradian_core.report.load, gradian_core.report.assemble;"
        "heavy = {'torch', 'sklearn', 'transformers', 'h5py'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a Gradian report: Expecting value"),
        (b"\xff\xfe\x00", "is not a Gradian report: 'utf-8'"),
        (b"[1]", "the outermost value is not an object"),
        (b"[" * 200_000, "is not a Gradian report"),
        (b'{"schema_version": NaN}', "NaN is not JSON"),
        (b"{}", "it has no schema_version"),
        (b'{"schema_version": 1.0}', "it has no schema_version"),
        (b'{"schema_version": "one"}', "it has no schema_version"),
        (b'{"schema_version": "1.1"}', "schema version 1.1; this Gradian reads up to 1.0"),
        (b'{"schema_version": "2.0"}', "schema version 2.0; this Gradian reads up to 1.0"),
        (b'{"schema_version": "0.9"}', "schema_version: Input should be '1.0'"),
        (b'{"schema_version": "1.0"}', "headline: Field required"),
        (
            b'{"schema_version": "1.0", "headline": "x", "n_examples": 1, "surprise": 1}',
            "surprise: Extra inputs are not permitted",
        ),
    ],
)
def test_damaged_or_newer(tmp_path, content, message):
    file = tmp_path / "report.json"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        Report.load(file)
    assert message in str(caught.value)
    assert str(file) in str(caught.value)
    assert caught.value.hint


def test_missing(tmp_path):
    with pytest.raises(InputError, match="There is no report at"):
        Report.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("example_id", "id", 1), ":1: not a table of scores: the first"),
        (lambda text: "", ":0: not a table of scores: the first"),
        (lambda text: text.replace("-8.0", "nan"), ":2: not a table of scores: nan is not"),
        (lambda text: text.replace("-8.0", "x"), ":2: not a table of scores: could not"),
        (lambda text: text.replace(",-8.0", ""), ":2: not a table of scores: not enough"),
        (lambda text: text.replace(",0,", ",9" + "9" * 30 + ",", 1), "not a table of scores"),
        (lambda text: text + '"', "not a table of scores"),
        (lambda text: text.rsplit("\n", 2)[0] + "\n", "it has 11 rows in place of 12"),
    ],
)
def test_damaged_scores(samples, tmp_path, change, message):
    folder = save(samples.poisoned(), tmp_path)
    table = folder / "scores.csv"
    damaged = change(table.read_text())
    assert damaged != table.read_text()
    table.write_text(damaged)
    with pytest.raises(InputError) as caught:
        Report.load(folder)
    assert message in str(caught.value)


def test_scores_of_another_run(samples, tmp_path):
    folder = save(samples.poisoned(), tmp_path)
    table = folder / "scores.csv"
    table.write_text(table.read_text().replace("-8.0", "-8.5", 1))
    with pytest.raises(InputError, match=r"scores\.csv is not the one .* another one.*both files"):
        Report.load(folder)


@pytest.mark.parametrize("rows", [[0, 0, *range(2, 12)], [*range(11), 12], [-1, *range(1, 12)]])
def test_scores_that_have_a_row_twice_or_not_at_all(samples, tmp_path, rows):
    report = samples.poisoned()
    wrong = replace(report.scores, row=np.array(rows, dtype=np.int64))
    folder = save(report.with_scores(wrong), tmp_path)
    with pytest.raises(InputError, match="does not have each of the 12 training rows once"):
        Report.load(folder)


def test_lost_scores_are_told(samples, tmp_path):
    folder = save(samples.poisoned(), tmp_path)
    (folder / "scores.csv").unlink()
    report = Report.load(folder)
    assert report.scores is None
    assert any("scores.csv is missing" in note for note in report.notes)


def test_scores_beside_a_report_without_any_are_not_its_own(samples, tmp_path):
    save(samples.poisoned(), tmp_path)
    folder = save(samples.poisoned(attribution=None), tmp_path)
    report = Report.load(folder)
    assert report.scores is None
    assert any("scores.csv is of another run" in note for note in report.notes)


def test_scores_that_are_no_text(samples, tmp_path):
    folder = save(samples.poisoned(), tmp_path)
    (folder / "scores.csv").write_bytes(b"\xff\xff")
    with pytest.raises(InputError, match="not a table of scores"):
        Report.load(folder)


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(names, st.integers(0, 2**40), names, finite, finite, finite), max_size=8))
def test_score_tables_come_back_bit_by_bit(tmp_path_factory, rows):
    ids, numbers, clusters, scores, nets, deltas = zip(*rows, strict=True) if rows else ([],) * 6
    table = ScoreTable(
        example_id=tuple(ids),
        row=np.array(numbers, dtype=np.int64),
        cluster=tuple(clusters),
        score=np.array(scores, dtype=np.float64),
        net=np.array(nets, dtype=np.float64),
        predicted_loss_delta_if_removed=np.array(deltas, dtype=np.float64),
    )
    path = tmp_path_factory.mktemp("scores") / "scores.csv"
    path.write_text(table.to_csv(), newline="", encoding="utf-8")
    back = ScoreTable.read_csv(path)
    assert back == table
    np.testing.assert_array_equal(np.signbit(back.score), np.signbit(table.score))


@pytest.mark.parametrize("field", ["example_id", "row", "cluster", "score", "net"])
def test_score_tables_differ_by_any_column(field):
    def table(**changes):
        columns = {
            "example_id": ("a",),
            "row": np.array([1]),
            "cluster": ("c",),
            "score": np.array([0.5]),
            "net": np.array([0.5]),
            "predicted_loss_delta_if_removed": np.array([0.25]),
        }
        return ScoreTable(**(columns | changes))

    other = ("b",) if field in {"example_id", "cluster"} else np.array([7])
    assert table() == table()
    assert table() != table(**{field: other})
    assert table() != "table"


def one_row(name):
    return ScoreTable(
        example_id=("a",),
        row=np.array([0]),
        cluster=(name,),
        score=np.array([-1.0]),
        net=np.array([-0.5]),
        predicted_loss_delta_if_removed=np.array([-1.0]),
    )


@pytest.mark.parametrize("name", ["=1+1", "+cmd", "-cmd", "@sum", "'quoted", "'=x"])
def test_no_cluster_name_runs_as_a_formula(name):
    cell = one_row(name).to_csv().splitlines()[1].split(",")[2].strip('"')
    assert cell == f"'{name}"


def test_numbers_as_names_stay_numbers(samples):
    assert one_row("-1").to_csv().splitlines()[1] == "a,0,-1,-1.0,-0.5,-1.0"
    table = samples.poisoned().scores
    assert table.to_csv().splitlines()[1] == "af08af5d5ff6-0,0,0,-8.0,-8.0,-0.7272727272727273"


def test_worst_severity(samples):
    assert samples.poisoned().worst_severity() is Severity.HIGH
    assert samples.poisoned(findings=[]).worst_severity() is None


def test_run_record_is_kept_apart(tmp_path):
    record = RunRecord(
        command=("gradian", "attribute", "\ud800"),
        started=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        duration_seconds=1.5,
        exit_status=0,
        machine={"cpus": 2},
    )
    path = record.save(tmp_path)
    assert path == tmp_path / "run.json"
    assert RunRecord.model_validate_json(path.read_bytes()) == record
    assert json.loads(path.read_text())["started"] == "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (True, True),
        (None, None),
        ({"b": (1,), "a": {"x"}, 3: "\ud800"}, {"3": "\ufffd", "a": ["x"], "b": [1]}),
        (object(), "<object>"),
    ],
)
def test_plain_json(value, plain):
    assert plain_json(value) == plain
    assert type(plain_json(value)) is type(plain)


def test_texts_are_cut_and_cleaned():
    assert limit_text("abcdef", 4) == "abcd… [2 more characters]"
    assert limit_text("abcd", 4) == "abcd"
    assert clean_text("a\ud800b\U0001f600") == "a\ufffdb\U0001f600"
