"""What the chat template does to rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gradian_checks._data_rows import read, spread
from gradian_checks._data_tool import is_tool
from gradian_core.audit.facts import ExampleFacts, NotAssessed
from gradian_core.audit.marks import has_reasoning
from gradian_core.data.example import Example, Turn
from gradian_core.data.template import ChatTemplate, TemplateRefusal, Tools
from gradian_core.runs.artifact import TrainingConfig

__all__ = [
    "MESSAGES",
    "SAMPLE",
    "Mismatch",
    "has_markers",
    "is_refused",
    "mismatch",
    "refusal_reason",
    "require_own_template",
    "sampled_chats",
]

MESSAGES = ("messages", "conversations", "conversation")
"""Shapes of rows that are lists of messages."""
SAMPLE = 400
"""Conversations that are rendered; a share is then right to within 5 points."""
_ANSWERS = 4
"""Answers of one conversation that are looked at: the first, the last, and some between."""
_SHOWN = 40
_MARKER = re.compile(r"\{%-?\s*generation\s*-?%\}")
_REFUSED = "the chat template refuses it"


def has_markers(template: str) -> bool:
    """Whether a template marks answers with ``{% generation %}``."""
    return _MARKER.search(template) is not None


def is_refused(problem: str) -> bool:
    """Whether a row's problem is that the template raised for it."""
    return problem.startswith(_REFUSED)


def refusal_reason(problem: str) -> str:
    """Return what the template said when it refused a row."""
    return problem.removeprefix(_REFUSED).lstrip(": ")


def require_own_template(training: TrainingConfig | None) -> None:
    """Raise where the tool writes rows with a template that is not the tokenizer's.

    Raises
    ------
    NotAssessed
        For LLaMA-Factory and torchtune, which bring their own, and for a template that
        axolotl's config chooses by name.
    """
    if training is None:
        return
    named = str(training.get("chat_template") or "")
    brings = is_tool(training, "llamafactory", "torchtune") or (
        is_tool(training, "axolotl") and named and not named.startswith("tokenizer_default")
    )
    if brings:
        name = f" ({named})" if named and len(named) < _SHOWN else ""
        raise NotAssessed(
            f"{training.tool} writes rows with a template of its own{name}, not the tokenizer's."
        )


def sampled_chats(examples: ExampleFacts) -> Iterator[tuple[int, Example]]:
    """Yield ``(position, row)`` of conversations, evenly spread over the data set."""
    chats = np.flatnonzero((examples.turns > 0) & (examples.answer != 0))
    yield from read(examples, spread(chats, SAMPLE))


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where a prompt, rendered alone, differs from the beginning of the whole conversation.

    Parameters
    ----------
    kind
        ``generation``: the generation prompt is not what stands before an answer.
        ``history``: an earlier part is written in another way once more turns follow.
    alone, whole
        The text at the first difference, in the prompt and in the conversation.
    """

    kind: Literal["generation", "history"]
    alone: str
    whole: str


def mismatch(template: ChatTemplate, example: Example) -> Mismatch | None:
    """Return the first mismatch of a conversation, None where all its prompts are prefixes.

    Raises
    ------
    TemplateRefusal
        If the template refuses the conversation.
    """
    turns, tools = example.turns, example.tools
    whole = template.render(turns, tools)
    answers = np.flatnonzero([turn.role == "assistant" for turn in turns])
    for index in spread(answers, _ANSWERS):
        found = _at(template, turns, tools, whole, int(index))
        if found is not None:
            return found
    return None


def _at(
    template: ChatTemplate, turns: tuple[Turn, ...], tools: Tools, whole: str, index: int
) -> Mismatch | None:
    try:
        prompt = template.render(turns[:index], tools) if index else ""
        opened = template.render(turns[:index], tools, generation_prompt=True) if index else ""
        closed = template.render(turns[: index + 1], tools)
    except TemplateRefusal:
        # Some templates refuse a part of what they accept as a whole; then nothing is compared.
        return None
    if not whole.startswith(opened):
        kind: Literal["generation", "history"] = (
            "generation" if whole.startswith(prompt) else "history"
        )
        return _difference(kind, opened, whole)
    # Thinking templates write an empty block of reasoning in the last turn only. That is theirs
    # and loses nothing; reasoning of the row that is gone once a turn follows is the row's.
    last = index == len(turns) - 1
    if not last and has_reasoning(turns[index]) and not whole.startswith(closed.rstrip()):
        return _difference("history", closed, whole)
    return None


def _difference(kind: Literal["generation", "history"], alone: str, whole: str) -> Mismatch:
    same = next(
        (i for i, (a, b) in enumerate(zip(alone, whole, strict=False)) if a != b),
        min(len(alone), len(whole)),
    )
    return Mismatch(kind, alone[same : same + _SHOWN], whole[same : same + _SHOWN])
