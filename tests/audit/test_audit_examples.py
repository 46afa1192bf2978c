"""Facts of rows against a plain second look at the same rows."""

from __future__ import annotations

import json
import unicodedata
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_core.audit.collect_examples import collect_examples, open_examples
from gradian_core.audit.facts import Style
from gradian_core.audit.hashing import EMPTY, fold, hash64
from gradian_core.audit.samples import chat_rows, rows
from gradian_core.data.files import dataset_from_rows, load_dataset

PLAIN = {"prompt": "a", "completion": "b"}


def pair(prompt, completion, **more):
    return {"prompt": prompt, "completion": completion, **more}


@given(st.text())
def test_folding_ignores_form_and_white_space_and_nothing_else(text):
    folded = fold(text)
    assert fold(folded) == folded
    assert fold(unicodedata.normalize("NFD", text)) == folded
    assert fold(f"\t{text}\n") == folded
    assert folded.split() == unicodedata.normalize("NFC", text).split()


def test_hashes_are_stable_numbers():
    assert hash64("") == EMPTY == int.from_bytes(blake2b(b"", digest_size=8).digest(), "little")
    assert hash64("a") != hash64("A")


@pytest.mark.parametrize(
    ("left", "right", "content", "question", "answer"),
    [
        (PLAIN, pair(" a\n", "b "), True, True, True),
        (PLAIN, pair("A", "b"), False, False, True),
        (PLAIN, pair("a", "c"), False, True, False),
        (PLAIN, pair("a", "b", system="s"), False, False, True),
        (PLAIN, pair("a", "b", cluster="x"), True, True, True),
        (PLAIN, {"question": "a", "answer": "b"}, True, True, True),
        (PLAIN, pair("a", "b", tools=[{"name": "f"}]), False, False, True),
        (pair("a b", "c"), pair("a", "b c"), False, False, False),
        # a new turn is not the same text in one turn
        (
            {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]},
            {"messages": [{"role": "user", "content": "a b"}]},
            False,
            False,
            True,
        ),
    ],
)
def test_what_counts_as_the_same(left, right, content, question, answer):
    facts = rows(items=[left, right])
    for column, same in (("content", content), ("question", question), ("answer", answer)):
        first, second = getattr(facts, column)
        assert (first == second) is np.bool_(same), column


def test_every_column_says_what_it_should():
    facts = rows(
        items=[
            {
                "messages": [
                    {"role": "system", "content": "ss"},
                    {"role": "human", "content": "first"},
                    {"role": "gpt", "content": "one"},
                    {"role": "user", "content": "second"},
                    {"role": "assistant", "content": "three"},
                ]
            },
            {"text": "raw text"},
            pair("ask", "  "),
            {"messages": [{"role": "user", "content": "alone"}]},
            {
                "messages": [
                    {"role": "user", "content": "call"},
                    {"role": "assistant", "content": None, "tool_calls": [{"name": "f"}]},
                ]
            },
        ]
    )
    assert facts.shape_names == ("messages", "text", "prompt+completion")
    assert facts.shapes.tolist() == [0, 1, 2, 0, 0]
    assert facts.roles == {"user": 3, "assistant": 2, "system": 1, "human": 1, "gpt": 1}
    assert facts.turns.tolist() == [5, 0, 2, 1, 2]
    assert facts.prompt_chars.tolist() == [2 + 5 + 3 + 6, 8, 3, 5, 4]
    assert facts.answer_chars.tolist() == [5, 0, 2, 0, 0]
    assert facts.has_tool_calls.tolist() == [False, False, False, False, True]
    assert facts.answer[[1, 3]].tolist() == [0, 0]
    assert facts.answer[2] == EMPTY != facts.answer[4]
    assert facts.asked.tolist() == [
        hash64("second"),
        0,
        hash64("ask"),
        0,
        hash64("call"),
    ]
    assert facts.question[1] == facts.content[1] == hash64("raw text")
    assert facts.question[3] == facts.content[3]
    assert facts.scanned == len(facts) == len(facts.rows) == 5


def test_tool_calls_make_answers_differ():
    def calling(name):
        turns = [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [name]}]
        return {"messages": turns}

    facts = rows(items=[calling("f"), calling("g"), calling("f")])
    assert facts.answer[0] == facts.answer[2] != facts.answer[1]


@pytest.mark.parametrize(
    ("answer", "style"),
    [
        ('{"a": 1}', Style.JSON),
        (" [1, 2]\n", Style.JSON | Style.LEADING_SPACE | Style.TRAILING_SPACE),
        ("[1, 2", 0),
        ("{not json}", 0),
        ("[" * 9000 + "]" * 9000, 0),
        ("```python\nx\n```", Style.FENCED),
        ("Answer: yes", Style.LABELLED),
        ("https://example.com", 0),
        ("......", Style.ONE_CHARACTER),
        ("...", 0),
        ("", Style.EMPTY_TURN),
        ("Dear {{name}},", Style.PLACEHOLDER),
    ],
)
def test_styles(answer, style):
    assert rows(items=[pair("q", answer)]).styles.tolist() == [style]


def test_a_file_opened_and_looked_at_at_once_gives_the_same_facts(tmp_path):
    items = [pair(f"p {i}", f"c {i % 3}") for i in range(50)]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    seen = []
    dataset, once = open_examples(path, advance=lambda: seen.append(1))
    twice = collect_examples(load_dataset(path))
    memory = rows(items=items)
    assert len(seen) == len(dataset) == 50
    for facts in (twice, memory):
        for column in ("content", "question", "answer", "asked", "styles", "shapes", "turns"):
            assert np.array_equal(getattr(once, column), getattr(facts, column)), column
        assert once.ids == facts.ids == tuple(example.id for example in dataset)


def test_arrays_cannot_be_changed_by_a_check():
    facts = chat_rows(3, system="be brief")
    for name in ("content", "question", "answer", "asked", "styles", "shapes", "turns"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(facts, name)[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        facts.has_tool_calls[0] = True


def test_ordinary_rows_are_all_different():
    facts = rows(n=400)
    assert len(set(facts.content.tolist())) == len(set(facts.question.tolist())) == 400


def test_memory_does_not_grow_with_the_text(tmp_path):
    path = tmp_path / "train.jsonl"
    line = json.dumps(pair("p" * 50_000, "c" * 50_000)) + "\n"
    path.write_text(line * 100)
    _, facts = open_examples(path)
    arrays = [
        value for name in facts.__slots__ if isinstance(value := getattr(facts, name), np.ndarray)
    ]
    assert sum(array.nbytes for array in arrays) < 100 * 100


def test_dataset_from_rows_and_facts_agree_on_ids():
    dataset = dataset_from_rows([PLAIN, PLAIN])
    assert collect_examples(dataset).ids == (dataset[0].id, dataset[1].id)
