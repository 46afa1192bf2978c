"""What a row's text gives away at a glance: the flags that need no second look at the text.

They only point at rows. A check that reports on one of them reads the rows themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradian_core.audit.facts import Style
from gradian_core.data.example import Example, Turn

__all__ = ["has_reasoning", "is_empty_answer", "marks"]

REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
"""Keys of a message under which its reasoning may stand beside the content."""

_PLACEHOLDER = re.compile(r"\{\{\s*[^\W\d_][\w .-]{0,40}\}\}")
_MARKUP = (
    ("[INST]", Style.INST),
    ("<|im_start|>", Style.CHATML),
    ("<|start_header_id|>", Style.HEADER),
    ("<start_of_turn>", Style.GEMMA),
    ("<|assistant|>", Style.ROLE_TAGS),
)


def marks(example: Example) -> Style:
    """Return the flags of a row that look beyond its last answer.

    Parameters
    ----------
    example
        The row.

    Returns
    -------
    Style
        ``PLACEHOLDER``, ``EMPTY_TURN``, ``REASONING``, ``BROKEN_TURNS`` and the markup flags.
    """
    found = Style(0)
    for text in _texts(example):
        if "{{" in text and _PLACEHOLDER.search(text):
            found |= Style.PLACEHOLDER
        if "[" in text or "<" in text:
            for mark, flag in _MARKUP:
                if mark in text:
                    found |= flag
    for turn in example.turns:
        if turn.role == "assistant":
            if is_empty_answer(turn):
                found |= Style.EMPTY_TURN
            if has_reasoning(turn):
                found |= Style.REASONING
    if _is_broken(example.turns):
        found |= Style.BROKEN_TURNS
    return found


def is_empty_answer(turn: Turn) -> bool:
    """Whether an assistant turn says nothing: no text, no tool call, no reasoning."""
    return not (
        turn.content.strip()
        or turn.extra.get("tool_calls")
        or any(turn.extra.get(key) for key in REASONING_KEYS)
    )


def has_reasoning(turn: Turn) -> bool:
    """Whether a turn carries reasoning, in ``<think>`` tags or under a key of its own."""
    return "</think>" in turn.content or any(turn.extra.get(key) for key in REASONING_KEYS)


def _texts(example: Example) -> Iterator[str]:
    if example.text is not None:
        yield example.text
    for turn in example.turns:
        yield turn.content


def _is_broken(turns: tuple[Turn, ...]) -> bool:
    """Whether user and assistant do not take turns, the user first; tools and system aside."""
    speakers = [
        turn.role
        for turn in turns
        if turn.role == "user" or (turn.role == "assistant" and not turn.extra.get("tool_calls"))
    ]
    # After a tool's result the assistant answers the call, so neighbours there are no break.
    if any(turn.role == "tool" or turn.extra.get("tool_calls") for turn in turns):
        return bool(speakers) and speakers[0] != "user"
    wanted = ("user", "assistant")
    return any(role != wanted[i % 2] for i, role in enumerate(speakers))
