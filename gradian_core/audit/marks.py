"""What a row's text gives away at a glance: the flags that need no second look at the text.

They only point at rows. A check that reports on one of them reads the rows themselves.
"""

from __future__ import annotations

import re

from gradian_core.audit.facts import Style
from gradian_core.data.example import Example, Turn

__all__ = ["REASONING_KEYS", "has_reasoning", "is_empty_answer", "marks"]

# As plain integers: operations on an enum's flags cost more than looking at the text.
_PLACED, _EMPTY, _REASONED, _BROKEN = map(
    int, (Style.PLACEHOLDER, Style.EMPTY_TURN, Style.REASONING, Style.BROKEN_TURNS)
)

REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
"""Keys of a message under which its reasoning may stand beside the content."""

# As plain integers: flags of an enum cost more than all else that is done with a row here.
_PLACED, _EMPTY, _REASONING, _BROKEN = (
    int(flag) for flag in (Style.PLACEHOLDER, Style.EMPTY_TURN, Style.REASONING, Style.BROKEN_TURNS)
)
_PLACEHOLDER = re.compile(r"\{\{\s*[^\W\d_][\w .-]{0,40}\}\}")
_MARKUP = (
    ("[INST]", int(Style.INST)),
    ("<|im_start|>", int(Style.CHATML)),
    ("<|start_header_id|>", int(Style.HEADER)),
    ("<start_of_turn>", int(Style.GEMMA)),
    ("<|assistant|>", int(Style.ROLE_TAGS)),
)


def marks(example: Example) -> int:
    """Return the flags of a row that look beyond its last answer.

    Parameters
    ----------
    example
        The row.

    Returns
    -------
    int
        :class:`Style` flags: ``PLACEHOLDER``, ``EMPTY_TURN``, ``REASONING``, ``BROKEN_TURNS``
        and those of markup.
    """
    if example.text is not None:
        return _in_text(example.text)
    found = _BROKEN if _is_broken(example.turns) else 0
    for turn in example.turns:
        found |= _in_text(turn.content)
        if turn.role == "assistant":
            if is_empty_answer(turn):
                found |= _EMPTY
            if has_reasoning(turn):
                found |= _REASONING
    return found


def _in_text(text: str) -> int:
    found = _PLACED if "{{" in text and _PLACEHOLDER.search(text) else 0
    if "[" in text or "<" in text:
        for mark, flag in _MARKUP:
            if mark in text:
                found |= flag
    return found


def is_empty_answer(turn: Turn) -> bool:
    """Whether an assistant turn says nothing: no text, no tool call, no reasoning."""
    if turn.content.strip():
        return False
    return not turn.extra.get("tool_calls") and not _reasons(turn)


def has_reasoning(turn: Turn) -> bool:
    """Whether a turn carries reasoning, in ``<think>`` tags or under a key of its own."""
    return "</think>" in turn.content or _reasons(turn)


def _reasons(turn: Turn) -> bool:
    return bool(turn.extra) and any(turn.extra.get(key) for key in REASONING_KEYS)


def _is_broken(turns: tuple[Turn, ...]) -> bool:
    """Whether user and assistant do not take turns, tools and the system message aside."""
    speakers = [turn.role for turn in turns if turn.role in ("user", "assistant")]
    if any(turn.role == "tool" or turn.extra.get("tool_calls") for turn in turns):
        # A call and the answer to its result are two assistant turns in a row, and right.
        speakers = speakers[:1] + speakers[-1:]
    if not speakers:
        return False
    wanted = ("user", "assistant")
    return len(speakers) % 2 == 1 or any(role != wanted[i % 2] for i, role in enumerate(speakers))
