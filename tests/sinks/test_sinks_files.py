import json
import subprocess
import sys
from importlib import import_module

import pytest

from gradian_core.protocols import Sink
from gradian_core.report.model import Report
from gradian_plugins.sinks import gradian_sinks
from gradian_plugins.sinks.csv_file import CsvSink
from gradian_plugins.sinks.json_file import JsonSink
from gradian_plugins.sinks.md_file import MarkdownSink


def sinks():
    for spec in gradian_sinks():
        module, name = spec.factory.split(":")
        yield pytest.param(getattr(import_module(module), name), id=spec.name)


def test_declaring_imports_nothing_heavy():
    code = (
        "import sys, gradian_plugins.sinks as s; list(s.gradian_sinks());"
        "heavy = {'numpy', 'pydantic', 'rich', 'jinja2'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("factory", list(sinks()))
@pytest.mark.parametrize("kind", ["poisoned", "flat", "hostile"])
def test_same_report_same_bytes_in_its_folder_only(samples, tmp_path, capsys, factory, kind):
    sink = factory()
    assert isinstance(sink, Sink)
    folder = tmp_path / "made" / "here"
    written = sink.write(getattr(samples, kind)(), folder)
    first = {path: path.read_bytes() for path in written}
    shown = capsys.readouterr().out

    again = sink.write(getattr(samples, kind)(), folder)
    assert {path: path.read_bytes() for path in again} == first
    assert capsys.readouterr().out == shown
    assert bool(written) != bool(shown)
    # nothing else: no temporary files, nothing outside
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(written)
    for content in first.values():
        content.decode()


@pytest.mark.parametrize("kind", ["poisoned", "hostile"])
def test_json_and_csv_are_what_load_reads(samples, tmp_path, kind):
    report = getattr(samples, kind)()
    (body,) = JsonSink().write(report, tmp_path)
    (table,) = CsvSink().write(report, tmp_path)
    assert (body.name, table.name) == ("report.json", "scores.csv")
    back = Report.load(tmp_path)
    assert back == report
    assert back.scores == report.scores
    json.loads(body.read_bytes())


def test_csv_has_every_row(samples, tmp_path):
    (path,) = CsvSink().write(samples.poisoned(), tmp_path)
    lines = path.read_text().splitlines()
    assert lines[0] == "example_id,row,cluster,score,net,predicted_loss_delta_if_removed"
    assert len(lines) == 13
    assert lines[5] == "b2b48516a871-4,4,100,-0.25,-0.25,-0.022727272727272728"


def test_csv_without_scores_writes_nothing(samples, tmp_path):
    assert CsvSink().write(samples.poisoned(attribution=None), tmp_path) == ()
    assert list(tmp_path.iterdir()) == []


def test_no_clock_machine_or_path_in_the_body(samples, tmp_path, monkeypatch):
    first = samples.poisoned().to_json()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/elsewhere")
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert samples.poisoned().to_json() == first


def test_a_failed_write_leaves_the_old_report(samples, tmp_path, monkeypatch):
    sink = MarkdownSink()
    (path,) = sink.write(samples.poisoned(), tmp_path)
    before = path.read_bytes()

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        sink.write(samples.flat(), tmp_path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
