"""A tokenizer's chat template, and what has to be known about its habits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from gradian_core.data.example import Turn

__all__ = ["ChatTemplate", "TemplateRefusal", "Tools", "chat_template"]

_MARKER = re.compile(r"\{%-?\s*generation\s*-?%\}")
_SENTINEL = "\ue000answer\ue001"

Tools = Sequence[Mapping[str, Any]]


class TemplateRefusal(Exception):  # noqa: N818 - an outcome that callers count, not a failure
    """The template raised for these turns; the message is its reason."""


class ChatTemplate:
    """Renders conversations as text.

    Parameters
    ----------
    tokenizer
        A transformers tokenizer with a chat template (or several, by name).
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def render(
        self, turns: Sequence[Turn], tools: Tools = (), *, generation_prompt: bool = False
    ) -> str:
        """Return the text of a conversation.

        Raises
        ------
        TemplateRefusal
            If the template raises, whatever it raises.
        """
        try:
            text = self._tokenizer.apply_chat_template(
                [turn.as_message() for turn in turns],
                tools=[dict(tool) for tool in tools] or None,
                add_generation_prompt=generation_prompt,
                tokenize=False,
            )
        except Exception as error:  # templates are foreign code: they may raise anything
            raise TemplateRefusal(_reason(error)) from error
        return str(text)

    def render_marked(
        self, turns: Sequence[Turn], tools: Tools = ()
    ) -> tuple[str, list[tuple[int, int]]]:
        """Return the text, and the character spans inside ``{% generation %}`` markers.

        ``apply_chat_template`` would tokenise as well, row by row; this is what it renders with.
        """
        from transformers.utils.chat_template_utils import render_jinja_template

        schemas = [dict(tool) for tool in tools] or None
        try:
            texts, spans = render_jinja_template(
                conversations=[[turn.as_message() for turn in turns]],
                tools=schemas,
                chat_template=self._tokenizer.get_chat_template(None, schemas),
                return_assistant_tokens_mask=True,
                **self._tokenizer.special_tokens_map,
            )
        except Exception as error:  # templates are foreign code: they may raise anything
            raise TemplateRefusal(_reason(error)) from error
        return str(texts[0]), [(int(a), int(b)) for a, b in spans[0]]

    @cached_property
    def has_markers(self) -> bool:
        """Whether a template of the tokenizer contains ``{% generation %}`` markers."""
        return any(_MARKER.search(text) for text in self._sources)

    @cached_property
    def writes_date(self) -> bool:
        """Whether a template may write today's date, so that tokens change from day to day."""
        return any("strftime_now" in text for text in self._sources)

    @cached_property
    def opens_answers(self) -> bool:
        """Whether the generation prompt writes anything, in a conversation of one turn."""
        turn = (Turn("user", "a"),)
        try:
            return self.render(turn, generation_prompt=True) != self.render(turn)
        except TemplateRefusal:
            return False

    @cached_property
    def closing(self) -> str:
        """What follows an answer at the end of a conversation; empty if that is not known."""
        try:
            text = self.render((Turn("user", "a"), Turn("assistant", _SENTINEL)))
        except TemplateRefusal:
            return ""
        return text.partition(_SENTINEL)[2]

    @cached_property
    def added_tokens(self) -> tuple[str, ...]:
        """Tokens such as ``<|im_end|>`` that stand for themselves, white space left out."""
        added = {str(token) for token in self._tokenizer.added_tokens_decoder.values()}
        return tuple(
            sorted(t for t in added.union(self._tokenizer.all_special_tokens) if t.strip())
        )

    def content_span(
        self, turns: Sequence[Turn], tools: Tools, text: str, index: int
    ) -> tuple[int, int] | None:
        """Find the content of one turn in the rendered text, by rendering another in its place.

        What the two texts have in common before and after it is not the content. None where
        the rest of the text depends on the content.
        """
        sentinel = _SENTINEL
        while sentinel in text:
            sentinel += "\ue002"
        turn = turns[index]
        # With tool calls some templates write a separator after the content, but only if there
        # is content; without them, the place that calls and content share is found.
        for extra in (turn.extra, {}) if turn.extra else ({},):
            others = [*turns[:index], Turn(turn.role, sentinel, extra), *turns[index + 1 :]]
            try:
                head, _, tail = self.render(others, tools).partition(sentinel)
            except TemplateRefusal:
                continue
            fits = text.startswith(head) and text.endswith(tail) and sentinel not in tail
            if fits and len(head) + len(tail) <= len(text):
                return len(head), len(text) - len(tail)
        return None

    @property
    def _sources(self) -> list[str]:
        template = self._tokenizer.chat_template
        return list(template.values()) if isinstance(template, dict) else [template]


def chat_template(tokenizer: Any) -> ChatTemplate | None:
    """Return the tokenizer's chat template, None without one."""
    return ChatTemplate(tokenizer) if getattr(tokenizer, "chat_template", None) else None


def _reason(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return text[0].rstrip(".") if text else type(error).__name__
