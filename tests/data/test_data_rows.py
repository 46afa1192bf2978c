"""Every row shape, and every row that must be refused."""

from __future__ import annotations

import math

import pytest

from gradian_core.data.rows import parse_row
from gradian_core.errors import InputError

USER, ASSISTANT = {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}
QA = [("user", "q"), ("assistant", "a")]


def turns(row):
    return [(turn.role, turn.content) for turn in parse_row(row, 0, "f:1").turns]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"messages": [USER, ASSISTANT]}, QA),
        ({"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}, QA),
        ({"conversation": [{"from": "User", "value": "q"}, {"from": "model", "value": "a"}]}, QA),
        ({"prompt": "q", "completion": "a"}, QA),
        ({"prompt": [USER], "completion": [ASSISTANT]}, QA),
        ({"prompt": [USER], "completion": "a"}, QA),
        ({"prompt": "", "completion": ""}, [("user", ""), ("assistant", "")]),
        ({"question": "q", "answer": "a"}, QA),
        ({"input": "q", "output": "a"}, QA),
        ({"instruction": "q", "output": "a"}, QA),
        ({"instruction": "q", "input": "", "output": "a"}, QA),
        ({"instruction": "q", "input": None, "output": "a", "history": []}, QA),
        ({"instruction": "", "input": "q", "output": "a"}, QA),
        ({"instruction": "q", "input": "i", "output": "a"}, [("user", "q\ni"), ("assistant", "a")]),
        (
            {"instruction": "q", "context": "i", "response": "a"},
            [("user", "q\ni"), ("assistant", "a")],
        ),
        ({"system": "s", "prompt": "q", "completion": "a"}, [("system", "s"), *QA]),
        ({"system": "", "prompt": "q", "completion": "a"}, QA),
        (
            {"system": "s", "messages": [{"role": "developer", "content": "s"}, USER, ASSISTANT]},
            [("system", "s"), *QA],
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "a"}, {"text": "b"}]},
                    {"role": "assistant", "content": [{"type": "text", "value": "c"}]},
                ]
            },
            [("user", "ab"), ("assistant", "c")],
        ),
        # precedence: the first shape that is whole wins, whatever else there is
        ({"messages": [USER, ASSISTANT], "text": "t", "prompt": "x", "completion": "y"}, QA),
        ({"prompt": "q", "completion": "a", "instruction": "x", "output": "y"}, QA),
        ({"prompt": "x", "completion": None, "input": "q", "output": "a"}, QA),
        ({"messages": None, "question": "q", "answer": "a", "source": 1}, QA),
    ],
)
def test_shapes(row, expected):
    assert turns(row) == expected


def test_text():
    example = parse_row({"text": "t\0", "system": "unread"}, 3, "f:4")
    assert (example.text, example.turns, example.row) == ("t\0", (), 3)
    assert example.id.endswith("-3")


def test_ids_follow_the_content_alone():
    one, two = ({"prompt": "q", "completion": "a", "cluster": c, "x": c} for c in (1, 2))
    messages = {"messages": [USER, ASSISTANT]}
    assert parse_row(one, 0, "").id == parse_row(two, 0, "").id == parse_row(messages, 0, "").id
    other = parse_row({"prompt": "q", "completion": "b"}, 0, "")
    assert other.id != parse_row(one, 0, "").id


CALL = {"type": "function", "function": {"name": "f", "arguments": {}}}


class TestToolCalls:
    def test_content_may_be_null(self):
        row = {
            "messages": [
                USER,
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "content": "4", "tool_call_id": "1", "name": None},
            ],
            "tools": [{"type": "function"}],
        }
        example = parse_row(row, 0, "f:1")
        assert example.turns[1].content == ""
        assert example.turns[1].as_message()["tool_calls"] == [CALL]
        assert example.turns[2].extra == {"tool_call_id": "1"}
        assert example.tools == ({"type": "function"},)

    def test_sharegpt_dialect(self):
        row = {
            "conversations": [
                {"from": "human", "value": "q"},
                {"from": "function_call", "value": '{"name": "f", "arguments": {}}'},
                {"from": "observation", "value": "4"},
                {"from": "gpt", "value": "a"},
            ],
            "tools": '[{"name": "f"}]',
        }
        example = parse_row(row, 0, "f:1")
        assert [turn.role for turn in example.turns] == ["user", "assistant", "tool", "assistant"]
        assert example.turns[1].extra == {"tool_calls": [CALL]}
        assert example.tools == ({"name": "f"},)


@pytest.mark.parametrize(
    ("row", "cluster"),
    [
        ({}, None),
        ({"cluster": 0}, "0"),
        ({"cluster_id": 3}, "3"),
        ({"cluster_id": 3.0}, "3"),
        ({"cluster": "3"}, "3"),
        ({"cluster": 2.5}, "2.5"),
        ({"cluster": 10**400}, str(10**400)),
        ({"cluster": " maths "}, "maths"),
        ({"cluster": ""}, None),
        ({"cluster": None, "cluster_id": 0}, "0"),
        ({"cluster": "a", "cluster_id": "b"}, "a"),
    ],
)
def test_cluster(row, cluster):
    assert parse_row({"text": "t", **row}, 0, "f:1").cluster == cluster


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": "q", "chosen": "a", "rejected": "b"}, "f:1: It is preference data.*chosen"),
        ({"input_ids": [1, 2]}, "f:1: It is tokenised already"),
        (
            {"foo": 1, "bar": 2},
            "fits no known shape; its keys: 'foo', 'bar'.*prompt \\+ completion",
        ),
        ({}, "its keys: none"),
        ({"prompt": "q", "response": "a"}, "'prompt' stands without 'completion'"),
        ({"prompt": "q", "completion": None}, "'prompt' stands without 'completion'"),
        ({"output": "a"}, "'output' stands without 'instruction'"),
        ({"messages": []}, "f:1: 'messages' is an empty list"),
        ({"messages": "[]"}, "'messages' is a string; a list of messages"),
        ({"messages": ["q"]}, r"'messages\[0\]' is a string; an object"),
        ({"messages": [{"content": "q"}]}, r"'messages\[0\]' names no role; its keys"),
        (
            {"messages": [{"role": "narrator", "content": "q"}]},
            "'narrator', which is no known role",
        ),
        ({"messages": [{"role": 1, "content": "q"}]}, "1, which is no known role"),
        ({"messages": [{"role": "user", "content": None}]}, r"'messages\[0\]' has no content"),
        ({"messages": [{"role": "user", "content": 4}]}, r"'messages\[0\].content' is a number"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            r"'messages\[0\].content\[0\]' is a part of type 'image_url'",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "is null; a string"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "a part of type 'a string'"),
        ({"conversations": [{"from": "function_call", "value": "f("}]}, "but not JSON: 'f\\('"),
        ({"messages": [USER | {"x": {1, 2}}]}, "cannot be written as JSON"),
        ({"messages": [USER | {"x": "\ud83d"}]}, "cannot be written as JSON"),
        ({"question": "q", "answer": 42}, "f:1: 'answer' is a number; a string is needed"),
        ({"question": ["q"], "answer": "a"}, "'question' is a list"),
        ({"prompt": "q", "completion": True}, "'completion' is true or false"),
        ({"instruction": "q", "input": 3, "output": "a"}, "'input' is a number"),
        ({"instruction": "q", "output": "a", "history": [["x", "y"]]}, "'history' beside"),
        ({"text": {"a": 1}}, "'text' is an object"),
        ({"text": "half \ud83d emoji"}, r"lone surrogate '\\ud83d' at character 5"),
        ({"system": 1, "prompt": "q", "completion": "a"}, "'system' is a number"),
        (
            {"system": "s", "messages": [{"role": "system", "content": "t"}, USER]},
            "'system' differs from the system message",
        ),
        ({"text": "t", "tools": "no json"}, "'tools' is a string, but not JSON"),
        ({"text": "t", "tools": ["x"]}, "'tools' is a list; a list of objects"),
        ({"text": "t", "cluster": math.nan}, "'cluster' is nan"),
        ({"text": "t", "cluster": [1]}, "'cluster' is a list"),
        ({"text": "t", "cluster": True}, "'cluster' is true or false"),
    ],
)
def test_refusals(row, message):
    with pytest.raises(InputError, match=f"^f:1.*{message.removeprefix('f:1: ')}") as caught:
        parse_row(row, 0, "f:1")
    caught.value.message.encode()  # what is shown can be written
