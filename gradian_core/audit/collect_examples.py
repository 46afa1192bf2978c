"""Rows to facts, in one streaming pass: what stays in memory is arrays, not text."""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from gradian_core.audit.facts import ExampleFacts, Style
from gradian_core.audit.hashing import fold, hash64
from gradian_core.data.example import Example, Turn
from gradian_core.data.files import Dataset
from gradian_core.data.rows import match_shape, parse_row

__all__ = ["collect_examples"]

_LABEL = re.compile(r"\s*[^\W\d_][^\s:]{0,24}:(?!//)")
_PLACEHOLDER = re.compile(r"\{\{\s*[^\W\d]\w*\s*\}\}")
_ROLE_KEYS = ("role", "from")
# Control characters that folding turns into nothing a text could hold keep the parts apart.
_TURN, _PART = "\x1e", "\x1f"


def collect_examples(
    dataset: Dataset, *, advance: Callable[[], None] | None = None
) -> ExampleFacts:
    """Look at every row once.

    Parameters
    ----------
    dataset
        The rows.
    advance
        Called after each row.

    Returns
    -------
    ExampleFacts
        Some 90 bytes a row; text is read again from the data set when it is asked for.

    Raises
    ------
    InputError
        If the file changed since it was opened.
    """
    columns = _Columns()
    for index, row in enumerate(dataset.raw()):
        columns.add(row, parse_row(row, index, dataset.where(index)))
        if advance is not None:
            advance()
    return columns.facts(dataset)


class _Columns:
    def __init__(self) -> None:
        self.ids: list[str] = []
        self.hashes = array("Q")
        self.sizes = array("i")
        self.kinds = array("B")
        self.shapes: dict[str, int] = {}
        self.roles: Counter[str] = Counter()

    def add(self, row: Mapping[str, Any], example: Example) -> None:
        keys = _shape_keys(row)
        for name in _role_names(row, keys):
            self.roles[name] += 1
        shape = self.shapes.setdefault("+".join(keys), len(self.shapes))
        self.ids.append(example.id)
        if example.text is not None:
            text = hash64(fold(example.text))
            style = _placeholder(example.text)
            self.hashes.extend((text, text, 0, 0))
            self.sizes.extend((len(example.text), 0, 0))
            self.kinds.extend((style, shape, 0))
            return
        self._add_turns(example, shape)

    def _add_turns(self, example: Example, shape: int) -> None:
        turns = example.turns
        prompt = example.prompt
        answer = turns[len(prompt)] if len(prompt) < len(turns) else None
        parts = [_folded(turn) for turn in turns]
        before = _PART.join(parts[: len(prompt)])
        if example.tools:
            before += _TURN + json.dumps([dict(tool) for tool in example.tools], sort_keys=True)
        question = hash64(before)
        whole = (
            question
            if len(prompt) == len(turns)
            else hash64(before + _TURN + _PART.join(parts[len(prompt) :]) + _extras(turns))
        )
        said = 0 if answer is None else hash64(fold(answer.content) + _calls(answer))
        asked = hash64(fold(prompt[-1].content)) if answer is not None and prompt else 0
        style = 0 if answer is None else _style(answer.content)
        style |= next((s for turn in turns if (s := _placeholder(turn.content))), 0)
        self.hashes.extend((whole, question, said, asked))
        answer_chars = 0 if answer is None else len(answer.content)
        self.sizes.extend((sum(len(turn.content) for turn in prompt), answer_chars, len(turns)))
        called = answer is not None and bool(answer.extra.get("tool_calls"))
        self.kinds.extend((style, shape, called))

    def facts(self, dataset: Dataset) -> ExampleFacts:
        hashes = np.array(self.hashes, np.uint64).reshape(-1, 4).T.copy()
        sizes = np.array(self.sizes, np.int32).reshape(-1, 3).T.copy()
        kinds = np.array(self.kinds, np.uint8).reshape(-1, 3).T.copy()
        turns = sizes[2].clip(max=np.iinfo(np.int16).max).astype(np.int16)
        called = kinds[2].astype(np.bool_)
        for column in (hashes, sizes, kinds, turns, called):
            column.setflags(write=False)
        return ExampleFacts(
            rows=dataset,
            ids=tuple(self.ids),
            content=hashes[0],
            question=hashes[1],
            answer=hashes[2],
            asked=hashes[3],
            styles=kinds[0],
            shapes=kinds[1],
            shape_names=tuple(self.shapes),
            roles=dict(self.roles.most_common()),
            prompt_chars=sizes[0],
            answer_chars=sizes[1],
            turns=turns,
            has_tool_calls=called,
            scanned=len(self.ids),
        )


def _shape_keys(row: Mapping[str, Any]) -> tuple[str, ...]:
    shape = match_shape(row)
    assert shape is not None, "a parsed row has a shape"
    return shape.keys_in(row)


def _role_names(row: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        if isinstance(row[key], (list, tuple)):
            for message in row[key]:
                yield next(str(message[k]) for k in _ROLE_KEYS if message.get(k) is not None)


def _folded(turn: Turn) -> str:
    return f"{turn.role}{_TURN}{fold(turn.content)}"


def _extras(turns: tuple[Turn, ...]) -> str:
    extras = [dict(turn.extra) for turn in turns]
    return _TURN + json.dumps(extras, sort_keys=True) if any(extras) else ""


def _calls(turn: Turn) -> str:
    calls = turn.extra.get("tool_calls")
    return _TURN + json.dumps(calls, sort_keys=True) if calls else ""


def _placeholder(text: str) -> int:
    return int(Style.PLACEHOLDER) if "{{" in text and _PLACEHOLDER.search(text) else 0


def _style(text: str) -> int:
    body = text.strip()
    if not body:
        return 0
    style = Style(0)
    ends = body[0] + body[-1]
    if ends in {"{}", "[]"} and _is_json(body):
        style |= Style.JSON
    if body.startswith("```"):
        style |= Style.FENCED
    if _LABEL.match(text):
        style |= Style.LABELLED
    if text[0].isspace():
        style |= Style.LEADING_SPACE
    if text[-1].isspace():
        style |= Style.TRAILING_SPACE
    if len(body) >= 4 and not body.strip(body[0]):
        style |= Style.ONE_CHARACTER
    return int(style)


def _is_json(body: str) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True
