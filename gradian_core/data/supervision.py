"""Which characters of a row are targets of the loss.

With a chat template, an answer starts where the generation prompt ends and goes up to and
including the token that ends the turn (``<|im_end|>``); a newline that the template writes
after it is not a target. If the template writes no such token, all that it writes after the
answer is.

1. ``{% generation %}`` markers decide, if there is one for each answer and it holds the answer,
   or if all of them lie inside the answers that way 2 finds.
2. Else by prefixes: the conversation is rendered up to the answer with the generation prompt,
   and up to the end of the answer. Both must be prefixes of the whole text.
3. Where one is not (Qwen3 drops the reasoning of earlier turns, some templates write no
   generation prompt), the content's place is found by rendering another content in its stead.

An answer that none of them finds is left out and reported, as is a row that the template
refuses: a prompt token is never supervised by guess.

Without a template, turns are joined as plain text by :data:`JOINER`, which is left out next to
white space and at the start: ``"The sky is"`` and ``" blue"`` simply follow each other. The answer
and the end-of-sequence token after it are targets, and the row ends there. A row with several
answers is supervised as a whole, prompts included, and reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gradian_core.data.example import Example, Turn
from gradian_core.data.template import ChatTemplate, TemplateRefusal, Tools
from gradian_core.data.tokens import Supervision

__all__ = ["JOINER", "Rendered", "Supervise", "join_turns", "render", "render_prompt"]

JOINER = "\n"
NO_ANSWER = "there is no assistant turn"
NOT_FOUND = "the place of an answer in the rendered text could not be found"
MARKERS_UNUSED = "the chat template's generation markers do not fit the assistant turns"
JOINED_WHOLE = "several answers without a chat template: the whole row is supervised"

Supervise = Literal["all", "last"]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A row as text, with its targets.

    Parameters
    ----------
    text
        What is tokenised.
    spans
        Character spans of the targets, in order. None: all of it.
    how
        How they were found.
    plain
        Whether the tokenizer adds its own special tokens (a template writes them itself).
    ends
        Whether the end-of-sequence token follows the text, as a target.
    problem
        Why targets are missing, None where none is.
    notice
        What else the report should say about the row.
    """

    text: str
    spans: tuple[Span, ...] | None
    how: Supervision
    plain: bool = False
    ends: bool = False
    problem: str | None = None
    notice: str | None = None


def render(example: Example, template: ChatTemplate | None, supervise: Supervise) -> Rendered:
    """Render a row and find its targets.

    Parameters
    ----------
    example
        The row.
    template
        The tokenizer's chat template, None without one.
    supervise
        ``"all"``: every answer. ``"last"``: the last one; what follows it is left out.

    Returns
    -------
    Rendered
        Raw text is supervised as a whole, whatever the template.
    """
    if example.text is not None:
        return Rendered(text=example.text, spans=None, how=Supervision.WHOLE, plain=True)
    turns = example.turns
    answers = _answers(turns)
    if supervise == "last" and answers:
        turns, answers = turns[: answers[-1] + 1], answers[-1:]
    if template is None:
        return _render_plain(turns, answers)
    try:
        return _render_template(turns, example.tools, answers, template)
    except TemplateRefusal as refusal:
        return Rendered(
            text=join_turns(turns),
            spans=(),
            how=Supervision.PREFIX,
            plain=True,
            problem=f"the chat template refuses it: {refusal}",
        )


def render_prompt(example: Example, template: ChatTemplate | None) -> str:
    """Return the text before the last answer, with the generation prompt.

    Raises
    ------
    TemplateRefusal
        If the template raises.
    """
    prompt = example.prompt
    if template is None:
        return _joined(join_turns(prompt), example.answer or "")[0]
    if not prompt or not template.opens_answers:
        turns = (*prompt, Turn("assistant", "a"))
        text = template.render(turns, example.tools)
        span = template.content_span(turns, example.tools, text, len(prompt))
        if span is not None:
            return text[: span[0]]
    return template.render(prompt, example.tools, generation_prompt=True)


def join_turns(turns: Sequence[Turn]) -> str:
    """Join turns as plain text (see the module docstring)."""
    text = ""
    for turn in turns:
        text = "".join(_joined(text, turn.content))
    return text


def _joined(left: str, right: str) -> tuple[str, str]:
    apart = left and not left[-1].isspace() and not right[:1].isspace()
    return (left + JOINER if apart else left), right


def _answers(turns: Sequence[Turn]) -> list[int]:
    return [i for i, turn in enumerate(turns) if turn.role == "assistant"]


def _render_plain(turns: tuple[Turn, ...], answers: list[int]) -> Rendered:
    if len(answers) > 1:
        return Rendered(
            text=join_turns(turns),
            spans=None,
            how=Supervision.WHOLE,
            plain=True,
            notice=JOINED_WHOLE,
        )
    if not answers:
        return Rendered(
            text=join_turns(turns),
            spans=(),
            how=Supervision.PROMPT,
            plain=True,
            problem=NO_ANSWER,
        )
    prompt, answer = _joined(join_turns(turns[: answers[0]]), turns[answers[0]].content)
    span = (len(prompt), len(prompt) + len(answer))
    return Rendered(
        text=prompt + answer, spans=(span,), how=Supervision.PROMPT, plain=True, ends=True
    )


# --- with a chat template ----------------------------------------------------------------------


def _render_template(
    turns: tuple[Turn, ...], tools: Tools, answers: list[int], template: ChatTemplate
) -> Rendered:
    marked: list[Span] = []
    if template.has_markers:
        text, marked = template.render_marked(turns, tools)
        trusted = _trusted_markers(text, marked, turns, answers)
        if trusted:
            return Rendered(text=text, spans=trusted, how=Supervision.MARKERS)
    else:
        text = template.render(turns, tools)
    found = [_answer_span(template, turns, tools, text, index) for index in answers]
    spans = tuple(span for span in found if span is not None)
    problem = NO_ANSWER if not answers else NOT_FOUND if None in found else None
    if template.has_markers and answers:
        inside = _markers_inside(text, marked, spans)
        if inside and problem is None:
            return Rendered(text=text, spans=inside, how=Supervision.MARKERS)
    return Rendered(
        text=text,
        spans=spans,
        how=Supervision.PREFIX,
        problem=problem,
        notice=MARKERS_UNUSED if template.has_markers and answers else None,
    )


def _trusted_markers(
    text: str, marked: list[Span], turns: Sequence[Turn], answers: list[int]
) -> tuple[Span, ...]:
    """Return the spans of the answers if it is plain that the markers mark them, else ().

    Each assistant turn must have one span that holds its content, and the turn before it must
    lie between the spans: some templates in use mark nothing, some mark everything.
    """
    speaking = _answers(turns)
    if len(marked) != len(speaking):
        return ()
    before = 0
    for index, (start, end) in zip(speaking, marked, strict=True):
        if turns[index].content.strip() not in text[start:end]:
            return ()
        if index and turns[index - 1].content.strip() not in text[before:start]:
            return ()
        before = end
    return tuple(span for i, span in zip(speaking, marked, strict=True) if i in answers)


def _markers_inside(text: str, marked: list[Span], spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Return the markers if all lie inside the answers and each answer has one, else ()."""
    kept: list[Span] = []
    for first, last in spans:
        inside = [
            (a, b) for a, b in marked if first <= a < b and a + len(text[a:b].rstrip()) <= last
        ]
        if not inside:
            return ()
        kept += inside
    # With one answer wanted of several, the markers of the earlier ones are no contradiction.
    relevant = [span for span in marked if spans and span[0] < span[1] and span[1] > spans[0][0]]
    return tuple(kept) if len(kept) == len(relevant) else ()


def _answer_span(
    template: ChatTemplate, turns: tuple[Turn, ...], tools: Tools, text: str, index: int
) -> Span | None:
    start = None
    if index and template.opens_answers:
        start = _prefix(template, turns[:index], tools, text, generation_prompt=True)
    is_last = index == len(turns) - 1
    end = len(text) if is_last else _prefix(template, turns[: index + 1], tools, text)
    if start is None or end is None:
        content = template.content_span(turns, tools, text, index)
        if content is None:
            return None
        start = content[0] if start is None else start
        end = _after_content(template, text, content[1]) if end is None else end
    if end < start:
        return None
    body = text[start:end].rstrip()
    return (start, start + len(body)) if body.endswith(template.added_tokens) else (start, end)


def _prefix(
    template: ChatTemplate,
    turns: tuple[Turn, ...],
    tools: Tools,
    text: str,
    *,
    generation_prompt: bool = False,
) -> int | None:
    try:
        prefix = template.render(turns, tools, generation_prompt=generation_prompt)
    except TemplateRefusal:
        return None
    return len(prefix) if text.startswith(prefix) else None


def _after_content(template: ChatTemplate, text: str, end: int) -> int:
    closing = template.closing
    for token in template.added_tokens:
        head, found, _ = closing.partition(token)
        if found and text.startswith(head + token, end) and not head.strip():
            return end + len(head) + len(token)
    return end + len(closing) if text.startswith(closing, end) else end
