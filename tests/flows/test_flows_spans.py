"""Answers in pieces: cutting, masks, and scores that add up to the row's."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_core.attribution.spans import pieces, token_spans
from gradian_core.cli.app import main
from gradian_core.data.encode import encode
from gradian_core.data.files import dataset_from_rows
from gradian_core.demo import MODEL_FOLDER
from gradian_core.errors import UsageError
from gradian_core.flows.attribute import attribute
from gradian_core.flows.explain import explain_example


def cut(text):
    kind, spans = pieces(text)
    return kind, [text[start:stop].strip() for start, stop in spans]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("Paris.", "sentence", ["Paris."]),
        ("It rains. The sun is out! Is it?", "sentence",
         ["It rains.", "The sun is out!", "Is it?"]),
        ('He said "no." Then he left.', "sentence", ['He said "no."', "Then he left."]),
        ("3.14 is pi. So it is", "sentence", ["3.14 is pi.", "So it is"]),
        ("雨です。晴れです。", "sentence", ["雨です。", "晴れです。"]),
        ("one\n\n  two\nthree", "line", ["one", "two", "three"]),
        ('{"a": [1, {"b": 2}], "c": "x, y"}', "field", ['{"a": [1, {"b": 2}],', '"c": "x, y"}']),
        ('["x", 2, null]', "field", ['["x",', "2,", "null]"]),
        ('{"a": 1, "b": "cut of', "field", ['{"a": 1,', '"b": "cut of']),
        ("{not json. At all", "sentence", ["{not json.", "At all"]),
        ("", "sentence", [""]),
    ],
)  # fmt: skip
def test_answers_are_cut_where_a_person_would_point(text, kind, expected):
    assert cut(text) == (kind, expected)


@given(st.text(max_size=200))
def test_pieces_cover_the_text_without_gaps(text):
    _, spans = pieces(text)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    assert all(a[1] == b[0] for a, b in itertools.pairwise(spans))


def test_deep_json_does_not_end_the_stack():
    assert pieces('{"a": 1, "b": ' + "[" * 100_000)[0] in {"field", "sentence"}


@pytest.fixture(scope="module")
def tokenizer():
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(MODEL_FOLDER, local_files_only=True)


@given(answers=st.lists(st.text(max_size=60), min_size=1, max_size=3))
def test_masks_are_a_partition_of_the_targets(tokenizer, answers):
    turns = [
        turn
        for answer in answers
        for turn in ({"role": "user", "content": "Go on"}, {"role": "assistant", "content": answer})
    ]
    tokens = encode(
        dataset_from_rows([{"messages": turns}]), tokenizer, max_seq_length=512, supervise="all"
    ).tokens
    ids, mask = tokens.row(0)
    spans = token_spans(tokenizer, ids, mask)
    total = sum((span.mask.astype(int) for span in spans), np.zeros(len(mask), int))
    assert (total == mask).all()


def test_a_piece_holds_the_tokens_of_its_own_words(tokenizer):
    answer = "The sky is blue. Rome is in Italy. Cats sleep."
    row = {"prompt": "Talk.", "completion": answer}
    tokens = encode(dataset_from_rows([row]), tokenizer, max_seq_length=512, supervise="all").tokens
    ids, mask = tokens.row(0)
    spans = token_spans(tokenizer, ids, mask)
    assert [span.text for span in spans] == ["The sky is blue.", "Rome is in Italy.", "Cats sleep."]
    for span in spans:
        decoded = tokenizer.decode(ids[span.mask].tolist(), skip_special_tokens=True)
        assert decoded.strip() == span.text
    # the token that ends the turn is a target too, and goes with the last piece
    assert spans[-1].mask[np.flatnonzero(mask)[-1]]


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_pieces_add_up_to_the_score_of_the_row(warm, make_config, reduction):
    config = make_config(
        warm.cache,
        engine={"name": "graddot", "cross_check": "none"},
        grads={"loss_reduction": reduction},
    )
    report = attribute(config)
    worst = min(range(len(report.scores)), key=lambda i: report.scores.net[i])
    flipped = [item.row for item in report.capability.items if item.tuned_score < item.base_score]
    name = report.scores.example_id[worst]
    parts = [explain_example(config, name, item) for item in flipped]
    assert all(part.signal == report.query.signal for part in parts)
    total = np.mean([part.score for part in parts])
    assert total == pytest.approx(report.scores.net[worst], rel=1e-4)


def test_the_command_shows_and_refuses(tiny, warm, capsys):
    config = warm.config
    given = ["explain", "-q", "-d", str(config.dataset), "-e", str(config.eval_dataset),
             "-m", config.base_model, "-a", config.adapter_path,
             "--cache-dir", config.cache_dir]  # fmt: skip
    name = dataset_from_rows(tiny.rows)[0].id
    assert main([*given, "--example", name, "--item", "0", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["example_id"] == name
    assert shown["score"] == pytest.approx(sum(span["score"] for span in shown["spans"]))
    assert main([*given, "--example", name.partition("-")[0], "--item", "0"]) == 0
    assert "the whole row" in capsys.readouterr().out
    assert main([*given, "--example", "nobody", "--item", "0"]) == 2
    assert "no training row nobody" in capsys.readouterr().err
    assert main([*given, "--example", name, "--item", "99"]) == 2
    assert "from 0 to 11" in capsys.readouterr().err


def test_an_explanation_needs_eval_data(warm):
    config = warm.config.model_copy(update={"eval_dataset": None})
    with pytest.raises(UsageError, match="eval data"):
        explain_example(config, "x", 0)
