"""Row shapes: what a row of a data set may look like, and the example that it becomes.

Shapes are tried in the order of :data:`SHAPES`; the first whose keys are all there (and not
null) wins, whatever else the row holds. Then

- a string prompt, question, instruction or input is a user turn, its partner the assistant's;
- ``instruction`` and a non-empty ``input`` (or ``context``) are joined by one newline;
- ``prompt`` and ``completion`` may be lists of messages, as in trl;
- ``system`` becomes a system turn in front (not for ``text``);
- ``cluster`` (or else ``cluster_id``) is the row's own cluster: numbers become text, 3.0 is 3.

A row that fits no shape is refused: training tools would have refused it too, and taking it
for raw text would hide the mistake.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gradian_core.data.example import Example, Turn, example_id
from gradian_core.data.turns import kind_of, parse_text, parse_tools, parse_turns
from gradian_core.errors import InputError

__all__ = ["SHAPES", "Shape", "match_shape", "parse_row"]

_COMMON_KEYS = ("system", "tools", "cluster", "cluster_id")


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape of a row.

    Parameters
    ----------
    needs
        The keys it needs: one of each group of aliases.
    takes
        Aliases of one more key that it reads if it is there.
    """

    needs: tuple[tuple[str, ...], ...]
    takes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " + ".join("/".join(group) for group in self.needs)

    def keys_in(self, present: Collection[str]) -> tuple[str, ...]:
        """Return the key of each group that is there, for the groups that have one."""
        found = (_first(present, group) for group in self.needs)
        return tuple(key for key in found if key is not None)


SHAPES = (
    Shape((("messages", "conversations", "conversation"),)),
    Shape((("prompt",), ("completion",))),
    Shape((("question",), ("answer",))),
    Shape((("instruction",), ("output", "response")), takes=("input", "context")),
    Shape((("input",), ("output",))),
    Shape((("text",),)),
)
"""The shapes, in order of precedence."""

_REFUSED = (
    (
        ("chosen", "rejected"),
        "It is preference data",
        "Gradian debugs supervised fine-tunes: keep prompt + completion, the chosen answer.",
    ),
    (
        ("input_ids",),
        "It is tokenised already",
        "Hand in the rows as text, as they were before tokenisation.",
    ),
)


@dataclass(frozen=True, slots=True)
class _Reading:
    """How rows with certain keys are read."""

    keys: tuple[str, ...]
    extra: str | None
    cluster: str | None


def match_shape(row: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the keys that make up the first shape that a row has, None if it has none."""
    reading = _reading(_present(row))
    return None if reading is None else reading.keys


def used_keys(row: Mapping[str, Any]) -> set[str]:
    """Return the keys of a row that :func:`parse_row` reads."""
    reading = _reading(_present(row))
    if reading is None:
        return set()
    return {*reading.keys, *_COMMON_KEYS, *([reading.extra] if reading.extra else [])}


def _present(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple([key for key, value in row.items() if value is not None])


# The rows of a file mostly have the same keys, so this is worked out once for each set of them.
@lru_cache(maxsize=256)
def _reading(present: tuple[str, ...]) -> _Reading | None:
    for shape in SHAPES:
        keys = shape.keys_in(present)
        if len(keys) == len(shape.needs):
            cluster = _first(present, ("cluster", "cluster_id"))
            return _Reading(keys, _first(present, shape.takes), cluster)
    return None


def parse_row(row: Mapping[str, Any], number: int, where: str) -> Example:
    """Return the example that a row is.

    Parameters
    ----------
    row
        The row, in any shape of :data:`SHAPES`.
    number
        Its number in the file, counted from 0.
    where
        File and line, as ``train.jsonl:12``, for messages.

    Raises
    ------
    InputError
        If the row fits no shape, is preference data, or a value is not what its key needs.
    """
    present = _present(row)
    for signs, what, hint in _REFUSED:
        sign = _first(present, signs)
        if sign is not None:
            raise InputError(f"{where}: {what} (key '{sign}').", hint=hint)
    reading = _reading(present)
    if reading is None:
        raise _no_shape(row, where)
    text = None
    turns: tuple[Turn, ...] = ()
    if "text" in reading.keys:
        text = parse_text(row["text"], "text", where)
    else:
        turns = _with_system(row, _turns(row, reading, where), where)
    tools = parse_tools(row.get("tools"), where)
    return Example(
        id=example_id(number, turns=turns, text=text, tools=tools),
        row=number,
        turns=turns,
        text=text,
        tools=tools,
        cluster=_cluster(row, reading.cluster, where),
    )


def _turns(row: Mapping[str, Any], reading: _Reading, where: str) -> tuple[Turn, ...]:
    if len(reading.keys) == 1:
        return parse_turns(row[reading.keys[0]], reading.keys[0], where)
    prompt, answer = reading.keys
    if prompt == "prompt":
        return _side(row, prompt, "user", where) + _side(row, answer, "assistant", where)
    question = parse_text(row[prompt], prompt, where)
    if prompt == "instruction":
        if row.get("history"):
            raise InputError(
                f"{where}: 'history' beside 'instruction' is not read.",
                hint="Write the conversation as 'messages'.",
            )
        extra = reading.extra
        more = parse_text(row[extra], extra, where) if extra else ""
        question = f"{question}\n{more}" if question and more else question or more
    return (Turn("user", question), Turn("assistant", parse_text(row[answer], answer, where)))


def _side(row: Mapping[str, Any], key: str, role: str, where: str) -> tuple[Turn, ...]:
    if isinstance(row[key], (list, tuple)):
        return parse_turns(row[key], key, where)
    return (Turn(role, parse_text(row[key], key, where)),)


def _with_system(row: Mapping[str, Any], turns: tuple[Turn, ...], where: str) -> tuple[Turn, ...]:
    if row.get("system") is None:
        return turns
    system = parse_text(row["system"], "system", where)
    if not system:
        return turns
    if turns[0].role != "system":
        return (Turn("system", system), *turns)
    if turns[0].content != system:
        raise InputError(
            f"{where}: 'system' differs from the system message of the conversation.",
            hint="Keep one of them.",
        )
    return turns


def _cluster(row: Mapping[str, Any], key: str | None, where: str) -> str | None:
    if key is None:
        return None
    value = row[key]
    if isinstance(value, str):
        return parse_text(value, key, where).strip() or None
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(f"{where}: '{key}' is {kind_of(value)}; a string or number is needed.")
    if isinstance(value, numbers.Integral):
        return str(int(value))
    number = float(value)
    if not math.isfinite(number):
        raise InputError(f"{where}: '{key}' is {number}; a string or finite number is needed.")
    return str(int(number)) if number.is_integer() else repr(number)


def _no_shape(row: Mapping[str, Any], where: str) -> InputError:
    names = [repr(str(key)) for key in row]
    found = ", ".join(names[:12]) or "none"
    found += f" and {len(names) - 12} more" if len(names) > 12 else ""
    reason = "the row fits no known shape"
    present = _present(row)
    for shape in SHAPES:
        if keys := shape.keys_in(present):
            missing = (group for group in shape.needs if _first(present, group) is None)
            partners = " and ".join("/".join(f"'{key}'" for key in group) for group in missing)
            reason = f"'{keys[0]}' stands without {partners} (missing or null)"
            break
    return InputError(
        f"{where}: {reason}; its keys: {found}.",
        hint=f"Known shapes: {'; '.join(map(str, SHAPES))}.",
    )


def _first(present: Collection[str], keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if key in present), None)
