"""Reports are read and rendered without torch or scikit-learn."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from gradian_core.findings import Finding, Severity
from gradian_core.plugins.registry import load_registry
from gradian_core.report.model import FindingReport, Report
from gradian_core.report.scores import ScoreTable
from gradian_core.report.terminal import print_report


@pytest.fixture
def report():
    finding = Finding(id="house.rule", severity=Severity.LOW, title="rows are [bold]odd")
    plain = Report(headline="All is well.", n_examples=2, findings=(FindingReport.of(finding),))
    return plain.with_scores(
        ScoreTable(
            example_id=("a-0", "b-1"),
            row=np.array([0, 1]),
            cluster=("0", "0"),
            score=np.array([-1.0, 2.0]),
            net=np.array([-1.0, 2.0]),
            predicted_loss_delta_if_removed=np.array([-0.5, 1.0]),
        )
    )


def test_every_sink_writes_and_the_report_reads_back(report, tmp_path):
    registry = load_registry()
    for name in ("json", "md", "csv"):
        registry.create("sink", name).write(report, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"report.json", "report.md", "scores.csv"}
    again = Report.load(tmp_path)
    assert again.to_json() == report.to_json()
    assert again.scores.score.tolist() == [-1.0, 2.0]


def test_the_terminal_shows_it(report):
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=80))
    assert "rows are [bold]odd" in stream.getvalue()


def test_nothing_of_it_imports_torch():
    code = (
        "import gradian_core.report.model, gradian_core.report.terminal, sys;"
        "from gradian_core.plugins.registry import load_registry;"
        "[load_registry().create('sink', n) for n in ('json', 'md', 'csv')];"
        "assert not {'torch', 'sklearn', 'peft'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
