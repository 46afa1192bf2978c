"""The whole audit, with the checks that are installed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import gradian_core
from gradian_core.audit import samples
from gradian_core.config.models import Config
from gradian_core.errors import UsageError
from gradian_core.findings import Severity
from gradian_core.flows import diagnose as module
from gradian_core.flows.diagnose import diagnose, examine

ROWS = samples.items(300)


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def train(tmp_path):
    return write(tmp_path / "train.jsonl", ROWS)


@pytest.fixture
def run(tmp_path):
    """Write a run with a rate that is far too high and a log that ends in NaN."""
    folder = tmp_path / "my-run"
    folder.mkdir()
    log = [
        {"step": i, "epoch": i / 50, "loss": 2.0 - i / 200, "grad_norm": 5.0, "learning_rate": 1e-3}
        for i in range(1, 100)
    ]
    log += [
        {"step": i, "epoch": 2.0, "loss": float("nan"), "grad_norm": float("nan")}
        for i in range(100, 120)
    ]
    state = {"global_step": 119, "max_steps": 150, "num_train_epochs": 3, "log_history": log}
    (folder / "trainer_state.json").write_text(json.dumps(state))
    adapter = dict(samples.adapter().raw)
    (folder / "adapter_config.json").write_text(json.dumps(adapter))
    return str(folder)


@pytest.fixture
def tokenizer(tmp_path):
    samples.tokenizer().tokenizer.save_pretrained(tmp_path / "tok")
    return str(tmp_path / "tok")


def ids(report):
    return {finding.id for finding in report.findings}


def test_healthy_data_give_no_fault(train, tokenizer):
    report = gradian_core.diagnose(Config(dataset=train, tokenizer=tokenizer))
    assert not [f for f in report.findings if f.severity.rank <= Severity.MEDIUM.rank]
    assert report.headline.startswith("No fault was found by")
    assert report.n_examples == 300
    assert report.scores is None


def test_one_short_sequence_length_leads_with_one_finding(train, tokenizer):
    diagnosis = examine(Config(dataset=train, tokenizer=tokenizer), max_seq_length=60)
    lead = diagnosis.result.findings[0]
    assert lead.id == "config.max_seq_length_vs_data"
    behind = {f.id for f in diagnosis.result.findings if f.because_of is not None}
    assert "data.completion_truncated" in behind
    assert diagnosis.report.worst_severity() is Severity.CRITICAL
    assert diagnosis.report.headline.startswith("1 fault found by")


def test_a_dead_run(train, run):
    report = diagnose(Config(dataset=train, run_dir=run))
    assert "dynamics.nan_loss" in ids(report)
    assert any(note.startswith("Run my-run: read by hf") for note in report.notes)


def test_contamination_needs_the_eval_set(train):
    without = diagnose(Config(dataset=train))
    assert any(
        entry.what == "data.train_eval_contamination" and "--eval-dataset" in entry.why
        for entry in without.not_done
    )
    report = diagnose(Config(dataset=train, eval_dataset=train))
    (finding,) = (f for f in report.findings if f.id == "data.train_eval_contamination")
    assert finding.severity is Severity.CRITICAL


def test_the_report_does_not_depend_on_where_and_when(tmp_path, train, run):
    first = diagnose(Config(dataset=train, run_dir=run)).to_json()
    assert first == diagnose(Config(dataset=train, run_dir=run)).to_json()
    assert str(tmp_path) not in first
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (tmp_path / "train.jsonl").rename(moved / "train.jsonl")
    (tmp_path / "my-run").rename(moved / "my-run")
    config = Config(dataset=str(moved / "train.jsonl"), run_dir=str(moved / "my-run"))
    assert diagnose(config).to_json() == first


def test_every_check_has_an_answer(train):
    diagnosis = examine(Config(dataset=train))
    listed = set(diagnosis.summaries)
    assert {outcome.check for outcome in diagnosis.result.outcomes} == listed
    assert len(listed) >= 41
    told = {entry.what for entry in diagnosis.report.not_done}
    missed = {o.check for o in diagnosis.result.outcomes if o.answer in ("not assessed", "failed")}
    assert told == missed
    assert not diagnosis.result.of("failed")


def test_selection_reaches_the_checks(train):
    diagnosis = examine(Config(dataset=train), select=["data.*"], ignore=["data.tiny_dataset"])
    checks = {outcome.check for outcome in diagnosis.result.outcomes}
    assert "data.duplicates" in checks
    assert "data.tiny_dataset" not in checks
    assert all(name.startswith("data.") for name in checks)


@pytest.mark.parametrize(
    ("config", "options", "words"),
    [
        ({}, {}, "nothing to diagnose"),
        ({"eval_dataset": "x.jsonl"}, {}, "nothing to diagnose"),
        ({"dataset": "x.jsonl"}, {"max_seq_length": 0}, "from 1 to"),
        ({"dataset": "x.jsonl"}, {"select": ["nothing"]}, "matches no check"),
    ],
)
def test_what_is_refused_before_anything_is_read(config, options, words):
    with pytest.raises(UsageError, match=words):
        diagnose(Config(**config), **options)


def test_no_cache_is_made_that_nobody_asked_for(tmp_path, monkeypatch, train, tokenizer):
    monkeypatch.chdir(tmp_path)
    diagnose(Config(dataset=train, tokenizer=tokenizer))
    assert not (tmp_path / ".gradian").exists()
    diagnose(Config(dataset=train, tokenizer=tokenizer, cache_dir=str(tmp_path / "kept")))
    assert any((tmp_path / "kept" / "tokens").iterdir())
    (tmp_path / ".gradian").mkdir()
    diagnose(Config(dataset=train, tokenizer=tokenizer))
    assert any((tmp_path / ".gradian" / "tokens").iterdir())


def test_a_broken_plugin_is_named_and_stops_nothing(train, house, monkeypatch):
    registry = house(a=house.found("a"), b=house.broken)
    monkeypatch.setattr(module, "load_registry", lambda block: registry)
    report = diagnose(Config(dataset=train))
    assert ids(report) == {"house.a"}
    (entry,) = report.not_done
    assert entry.what == "house.b"
    assert "house-checks 1.2" in entry.why


def test_a_pointer_in_place_of_a_file_is_the_finding(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "trainer_state.json").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 1234\n"
    )
    (folder / "adapter_config.json").write_text(json.dumps(dict(samples.adapter().raw)))
    report = diagnose(Config(run_dir=str(folder)))
    (finding,) = (f for f in report.findings if f.id == "run.file_is_lfs_pointer")
    assert "git lfs pull" in finding.detail
    assert str(tmp_path) not in report.to_json()


def test_neither_torch_nor_peft_is_needed(train, run, tokenizer):
    program = (
        "import sys\n"
        "for name in ('torch', 'peft', 'sklearn', 'hdbscan', 'pyarrow', 'datasets'):\n"
        "    sys.modules[name] = None\n"
        "from gradian_core.cli.app import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    options = ["-q", "-d", train, "-r", run, "--tokenizer", tokenizer, "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-c", program, "diagnose", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "dynamics.nan_loss" in {f["id"] for f in json.loads(done.stdout)["findings"]}
