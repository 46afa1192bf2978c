"""Flags that point checks at rows."""

from __future__ import annotations

from typing import Any

import pytest

from gradian_core.audit.facts import Style
from gradian_core.audit.marks import marks
from gradian_core.data.files import dataset_from_rows

CALL = {
    "role": "assistant",
    "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": {}}}],
}


def of(*turns: Any) -> Style:
    messages = [t if isinstance(t, dict) else {"role": t[0], "content": t[1]} for t in turns]
    return Style(marks(dataset_from_rows([{"messages": messages}])[0]))


def test_an_ordinary_row_has_no_flag() -> None:
    assert of(("system", "Be brief."), ("user", "a"), ("assistant", "b")) == Style(0)
    assert of(("user", "is 1 < 2 [sic]?"), ("assistant", "yes")) == Style(0)
    assert Style(marks(dataset_from_rows([{"text": "a"}])[0])) == Style(0)


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("I am {{name}}.", Style.PLACEHOLDER),
        ("Order {{ Order Number }}", Style.PLACEHOLDER),
        ("[INST] a [/INST]", Style.INST),
        ("<|im_start|>user", Style.CHATML),
        ("<|start_header_id|>user", Style.HEADER),
        ("<start_of_turn>user", Style.GEMMA),
        ("<|assistant|>", Style.ROLE_TAGS),
    ],
)
def test_text_anywhere(text: str, flag: Style) -> None:
    assert of(("user", text), ("assistant", "b")) == flag
    assert of(("user", "a"), ("assistant", text)) == flag
    assert Style(marks(dataset_from_rows([{"text": text}])[0])) == flag


@pytest.mark.parametrize("text", ["{{}}", "{ {name} }", "{{1}}", "{name}"])
def test_no_placeholder(text: str) -> None:
    assert of(("user", text), ("assistant", "b")) == Style(0)


def test_turns_that_say_nothing() -> None:
    assert of(("user", "a"), ("assistant", " \n")) == Style.EMPTY_TURN
    assert of(("user", "a"), CALL, ("tool", "sun"), ("assistant", "b")) == Style(0)
    thinking = {"role": "assistant", "content": "", "reasoning_content": "hm"}
    assert of(("user", "a"), thinking) == Style.REASONING
    assert of(("user", "a"), ("assistant", "<think>hm</think>b")) == Style.REASONING


@pytest.mark.parametrize(
    "roles",
    [
        ("assistant",),
        ("user",),
        ("assistant", "user"),
        ("user", "user", "assistant"),
        ("user", "assistant", "assistant"),
        ("user", "assistant", "user"),
    ],
)
def test_turns_out_of_order(roles: tuple[str, ...]) -> None:
    assert of(*((role, "a") for role in roles)) == Style.BROKEN_TURNS


def test_a_call_at_the_end_is_in_order() -> None:
    assert of(("user", "a"), CALL) == Style(0)
