"""Validating values against a pydantic model, with complaints written for people.

Used for ``gradian.yaml`` and for the options of plugins alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from gradian_core.text import did_you_mean, excerpt

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    ModelT = TypeVar("ModelT", bound=BaseModel)

__all__ = ["InvalidValues", "Key", "Problem", "accepted_names", "validate"]

Key = tuple[str | int, ...]
"""Where a value stands: names of sections and fields, numbers of list items."""

_SHOWN = 10

_WANTED = {
    "bool_type": "true or false",
    "dict_type": "a section of keys",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "a section of keys",
    "string_type": "text (a number or a date needs quotes)",
    "tuple_type": "a list",
}
_LIMITS = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with one value.

    Parameters
    ----------
    key
        Where it stands.
    text
        What is wrong, to be printed after the key.
    """

    key: Key
    text: str

    def __str__(self) -> str:
        name = ".".join(str(part) for part in self.key)
        return f"{excerpt(name, 100)}: {self.text}" if name else self.text


class InvalidValues(Exception):  # noqa: N818 - always turned into an error that knows the source
    """Values that do not fit a model.

    Parameters
    ----------
    problems
        What is wrong, in the order of the values.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems[:_SHOWN]))
        self.problems = problems


def validate(model: type[ModelT], values: Mapping[str, Any]) -> ModelT:
    """Return the model with these values; nothing is converted behind the user's back.

    Types are strict in the sense of JSON: ``true`` is no number, ``"8"`` neither, a whole number
    is fine where a number is wanted, and a list where a tuple is.

    Raises
    ------
    InvalidValues
        For unknown keys (whatever the model itself would do with them) and unfit values.
    """
    from pydantic import ValidationError

    known = accepted_names(model)
    unknown = [Problem((key,), _unknown(key, known)) for key in values if key not in known]
    fitting = {key: value for key, value in values.items() if key in known}
    try:
        made = model.model_validate_json(json.dumps(fitting, default=str), strict=True)
    except ValidationError as error:
        unfit = [_problem(model, detail) for detail in error.errors(include_url=False)]
        raise InvalidValues((*unknown, *unfit)) from error
    if unknown:
        raise InvalidValues(tuple(unknown))
    return made


def accepted_names(model: type[BaseModel]) -> frozenset[str]:
    """Return every key that the model reads: names of fields and their aliases."""
    from pydantic import AliasChoices

    names = set(model.model_fields)
    for field in model.model_fields.values():
        alias = field.validation_alias
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
        names |= {choice for choice in choices if isinstance(choice, str)}
    return frozenset(names)


def _problem(model: type[BaseModel], detail: ErrorDetails) -> Problem:
    key, kind = detail["loc"], detail["type"]
    context: Mapping[str, Any] = detail.get("ctx", {})
    if kind == "extra_forbidden":
        parent = _model_at(model, key[:-1])
        return Problem(key, _unknown(str(key[-1]), accepted_names(parent) if parent else ()))
    if kind == "json_invalid":
        # We wrote the JSON ourselves; half of a surrogate pair is all that it cannot hold.
        return Problem((), "some text in it is not valid Unicode")
    if kind == "missing":
        return Problem(key, "is required")
    if kind in _WANTED:
        text = f"wants {_WANTED[kind]}"
    elif kind == "literal_error":
        text = f"wants {context['expected']}"
    elif kind in _LIMITS:
        words, limit = _LIMITS[kind]
        text = f"must be {words} {context[limit]}"
    elif kind == "value_error":
        text = excerpt(str(context["error"]), 200)
    else:
        text = excerpt(detail["msg"], 200)
    return Problem(key, f"{text}, not {_shown(detail['input'])}")


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a section of keys"
    if isinstance(value, list):
        return "a list"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return excerpt(repr(value), 60)


def _unknown(key: str, known: frozenset[str] | tuple[str, ...]) -> str:
    hint = did_you_mean(key, known)
    return f"unknown key. {hint}" if hint else "unknown key"


def _model_at(model: type[BaseModel], key: Key) -> type[BaseModel] | None:
    """Return the model of the section at ``key``; list positions stand for their items."""
    from pydantic import BaseModel

    current: type[BaseModel] | None = model
    for part in key:
        if current is None or not isinstance(part, str):
            continue
        field = current.model_fields.get(part)
        annotation = None if field is None else field.annotation
        current = next(
            (kind for kind in _alternatives(annotation) if issubclass(kind, BaseModel)), None
        )
    return current


def _alternatives(annotation: Any) -> Iterator[type]:
    """Yield the classes in an annotation such as ``list[Model] | None``."""
    if isinstance(annotation, type):
        yield annotation
    for argument in get_args(annotation):
        yield from _alternatives(argument)
