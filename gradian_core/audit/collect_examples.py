"""Rows to facts, in one streaming pass: what stays in memory is arrays, not text."""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gradian_core.audit.facts import ExampleFacts, Style
from gradian_core.audit.hashing import fold, hash64
from gradian_core.audit.marks import marks
from gradian_core.data.example import Example
from gradian_core.data.files import Dataset, load_dataset
from gradian_core.data.rows import match_shape, parse_row

__all__ = ["collect_examples", "open_examples"]

# As plain integers: flags of an enum cost more than everything else that is done with a row.
_JSON, _FENCED, _LABELLED, _LEADING, _TRAILING, _ONE_CHARACTER = map(int, list(Style)[:6])

_LABEL = re.compile(r"[^\W\d_][^\s:]{0,24}:(?!//)")
_ROLE_KEYS = ("role", "from")
# Control characters that folding turns into nothing a text could hold keep the parts apart.
_TURN, _PART = "\x1e", "\x1f"


def open_examples(
    path: str | Path, *, advance: Callable[[], object] | None = None
) -> tuple[Dataset, ExampleFacts]:
    """Open a data set and look at every row in the pass that checks them.

    Rows that cannot be read are left out and counted: one of them must not hide what is wrong
    with the rest.

    Parameters
    ----------
    path
        As for :func:`gradian_core.data.files.load_dataset`.
    advance
        Called after each row.

    Raises
    ------
    InputError
        As :func:`~gradian_core.data.files.load_dataset`.
    """
    columns = _Columns()

    def visit(row: Mapping[str, Any], example: Example) -> None:
        columns.add(row, example)
        if advance is not None:
            advance()

    dataset = load_dataset(path, visit=visit, lenient=True)
    return dataset, columns.facts(dataset)


def collect_examples(dataset: Dataset) -> ExampleFacts:
    """Look at every row of a data set that is open already, once.

    Returns
    -------
    ExampleFacts
        Some 120 bytes a row; text is read again from the data set when it is asked for.

    Raises
    ------
    InputError
        If the file changed since it was opened.
    """
    columns = _Columns()
    for index, row in enumerate(dataset.raw()):
        columns.add(row, parse_row(row, index, dataset.where(index)))
    return columns.facts(dataset)


class _Columns:
    def __init__(self) -> None:
        self.ids: list[str] = []
        self.hashes = array("Q")
        self.sizes = array("i")
        self.kinds = array("H")
        self.shapes: dict[str, int] = {}
        self.roles: Counter[str] = Counter()

    def add(self, row: Mapping[str, Any], example: Example) -> None:
        keys = match_shape(row) or ()
        for key in keys:
            if isinstance(row[key], (list, tuple)):
                self.roles.update(_role_names(row[key]))
        shape = self.shapes.setdefault("+".join(keys), len(self.shapes))
        self.ids.append(example.id)
        if example.text is not None:
            text = hash64(fold(example.text))
            self.hashes.extend((text, text, 0, 0))
            self.sizes.extend((len(example.text), 0, 0))
            self.kinds.extend((marks(example), shape, 0))
        else:
            self._add_turns(example, shape)

    def _add_turns(self, example: Example, shape: int) -> None:
        turns = example.turns
        split = len(example.prompt)
        answer = turns[split] if split < len(turns) else None
        folded = [fold(turn.content) for turn in turns]
        parts = [turn.role + _TURN + text for turn, text in zip(turns, folded, strict=True)]
        before = _PART.join(parts[:split]) + _json(example.tools)
        question = hash64(before)
        if answer is None:
            self.hashes.extend((question, question, 0, 0))
        else:
            after = _PART.join(parts[split:]) + _json([turn.extra for turn in turns])
            whole = hash64(before + _PART + after)
            said = hash64(folded[split] + _json(answer.extra.get("tool_calls")))
            self.hashes.extend((whole, question, said, hash64(folded[split - 1]) if split else 0))
        lengths = [len(turn.content) for turn in turns]
        style = marks(example) | (0 if answer is None else _style(answer.content))
        self.sizes.extend((sum(lengths[:split]), lengths[split] if answer else 0, len(turns)))
        called = answer is not None and bool(answer.extra.get("tool_calls"))
        self.kinds.extend((style, shape, called))

    def facts(self, dataset: Dataset) -> ExampleFacts:
        hashes = np.array(self.hashes, np.uint64).reshape(-1, 4).T.copy()
        sizes = np.array(self.sizes, np.int32).reshape(-1, 3).T.copy()
        kinds = np.array(self.kinds, np.uint16).reshape(-1, 3).T.copy()
        turns = sizes[2].clip(max=np.iinfo(np.int16).max).astype(np.int16)
        shapes, called = kinds[1].astype(np.uint8), kinds[2].astype(np.bool_)
        for column in (hashes, sizes, kinds, turns, shapes, called):
            column.setflags(write=False)
        return ExampleFacts(
            rows=dataset,
            ids=tuple(self.ids),
            content=hashes[0],
            question=hashes[1],
            answer=hashes[2],
            asked=hashes[3],
            styles=kinds[0],
            shapes=shapes,
            shape_names=tuple(self.shapes),
            roles=dict(self.roles.most_common()),
            prompt_chars=sizes[0],
            answer_chars=sizes[1],
            turns=turns,
            has_tool_calls=called,
            scanned=len(self.ids),
            rejected=dataset.rejected,
        )


def _role_names(messages: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        yield next(str(message[k]) for k in _ROLE_KEYS if message.get(k) is not None)


def _json(value: Any) -> str:
    """Return what stands beside the text of a row, such as tool calls; mostly nothing."""
    # default: the extras of turns are mappings of any kind, which json does not know.
    return _TURN + json.dumps(value, sort_keys=True, default=dict) if value and any(value) else ""


def _style(text: str) -> int:
    body = text.strip()
    if not body:
        return 0
    first = body[0]
    style = 0
    if first + body[-1] in {"{}", "[]"} and _is_json(body):
        style |= _JSON
    if body.startswith("```"):
        style |= _FENCED
    if _LABEL.match(body):
        style |= _LABELLED
    if text[0].isspace():
        style |= _LEADING
    if text[-1].isspace():
        style |= _TRAILING
    if len(body) >= 4 and not body.strip(first):
        style |= _ONE_CHARACTER
    return style


def _is_json(body: str) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True
