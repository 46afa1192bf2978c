"""Facts by name: lazy, computed once, or the reason why not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gradian_core.audit import samples
from gradian_core.audit.gather import Facts, Inputs, Missing
from gradian_core.check import FACTS
from gradian_core.errors import InputError
from gradian_core.runs.artifact import RunArtifact, TrainerLog

ROWS = samples.items(5)


@pytest.fixture
def train(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.fixture
def tokenizer(tmp_path):
    samples.tokenizer().tokenizer.save_pretrained(tmp_path / "tok")
    return tmp_path / "tok"


class Reader:
    """Stands for the run readers; counts its calls."""

    def __init__(self, **parts):
        self.parts = parts
        self.calls = []

    def __call__(self, path):
        self.calls.append(path)
        return RunArtifact(path=path, reader="made-up", **self.parts)


def facts(reader=None, **inputs):
    return Facts(Inputs(**inputs), reader or Reader())


def test_nothing_given_names_the_options():
    empty = facts()
    wanted = {
        "adapter": ("--run",),
        "eval_examples": ("--eval-dataset",),
        "eval_tokens": ("--eval-dataset", "--base-model"),
        "examples": ("--dataset",),
        "log": ("--run",),
        "tokenizer": ("--base-model",),
        "tokens": ("--dataset", "--base-model"),
        "training": ("--run",),
    }
    assert {name: empty.get(name).unlock for name in FACTS} == wanted
    assert empty.dataset is empty.eval_dataset is None
    with pytest.raises(KeyError):
        empty.get("dataset")


def test_everything_given(train, tokenizer, tmp_path):
    reader = Reader(
        training=samples.training(max_seq_length=60),
        adapter=samples.adapter(),
        log=TrainerLog(records=({"step": 1, "loss": 2.0},)),
        notes=("One file was skipped.",),
    )
    full = facts(
        reader,
        dataset=train,
        eval_dataset=train,
        run=tmp_path,
        base_model="somebody/elses",
        tokenizer=str(tokenizer),
    )
    got = {name: full.get(name) for name in FACTS}
    assert not any(isinstance(value, Missing) for value in got.values())
    assert len(got["examples"]) == len(got["eval_examples"]) == 5
    assert got["tokens"].max_seq_length == 60
    assert got["tokens"].limit_source == "sample"
    assert got["log"].loss.tolist() == [2.0]
    assert got["tokenizer"].name == str(tokenizer)
    assert all(full.get(name) is value for name, value in got.items())
    assert reader.calls == [tmp_path]
    assert "One file was skipped." in full.notes
    assert "Rows were cut at 60 tokens (sample), as in training." in full.notes


def test_a_run_without_a_part_says_why(tmp_path):
    bare = facts(Reader(), run=tmp_path)
    assert bare.get("training").why == f"The run {tmp_path.name} holds no training settings."
    assert bare.get("log").unlock == ()
    refused = facts(
        Reader(refusals={"not_a_training_run": f"{tmp_path} is a prediction."}), run=tmp_path
    )
    name = tmp_path.name
    assert refused.get("adapter").why == f"The run {name} holds no adapter. {name} is a prediction."


def test_the_adapter_beside_the_run_wins(tmp_path):
    class Two:
        def __call__(self, path):
            adapter = samples.adapter(r=8 if path.name == "mine" else 16)
            return RunArtifact(path=path, reader="made-up", adapter=adapter)

    both = facts(Two(), run=tmp_path, adapter=tmp_path / "mine")
    assert both.get("adapter").r == 8
    none = facts(Reader(), adapter=tmp_path)
    with pytest.raises(InputError, match="is no adapter"):
        none.get("adapter")


def test_the_tokenizer_beside_the_run_is_taken_and_told(train, tokenizer):
    found = facts(Reader(), dataset=train, run=tokenizer)
    assert found.get("tokenizer").name == str(tokenizer)
    assert f"The tokenizer is the one saved in {tokenizer.name}." in found.notes
    beside = replace(samples.adapter(), path=tokenizer)
    assert facts(Reader(adapter=beside), run=Path("x")).get("tokenizer").name == str(tokenizer)


def test_a_damaged_tokenizer_that_nobody_asked_for_stops_nothing(train, tmp_path):
    for name in ("tokenizer_config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{")
    found = facts(Reader(), dataset=train, run=tmp_path)
    assert found.get("tokens").unlock == ("--base-model",)
    assert any("cannot be loaded" in note for note in found.notes)
    assert not any(str(tmp_path) in note for note in found.notes)


def test_a_model_that_cannot_be_fetched_stops_no_audit(train, monkeypatch):
    def fails(name):
        raise InputError(f"The tokenizer of {name} cannot be loaded: no network.")

    monkeypatch.setattr("gradian_core.audit.collect_tokenizer.collect_tokenizer", fails)
    offline = facts(dataset=train, base_model="some/model")
    assert len(offline.get("examples")) == 5
    missing = offline.get("tokens")
    assert "no network" in missing.why
    assert missing.unlock == ("--tokenizer",)
    # what was asked for by name, or lies here and is damaged, is refused
    for inputs in ({"tokenizer": "some/model"}, {"base_model": str(train.parent)}):
        with pytest.raises(InputError, match="cannot be loaded"):
            facts(dataset=train, **inputs).get("tokens")


def test_a_data_set_without_a_readable_row_is_refused_by_line(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text('\n{"prompt": "a"\n')
    with pytest.raises(InputError, match=r"train\.jsonl:2: not JSON"):
        facts(dataset=path).get("examples")


def test_a_damaged_row_is_left_out_and_told(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text('{"prompt": "a", "completion": "b"}\n{"prompt": "a"\n')
    found = facts(dataset=path)
    assert len(found.get("examples")) == 1
    assert "1 of 2 rows of train.jsonl cannot be read and were left out." in found.notes


def test_a_file_that_changes_under_us(train):
    changing = facts(dataset=train)
    examples = changing.get("examples")
    train.write_text("{}\n" * 9)
    with pytest.raises(InputError, match="changed while it was being read"):
        examples.rows[0]
