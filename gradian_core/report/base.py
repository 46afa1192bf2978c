"""What the parts of a report have in common: frozen, closed, and plain enough for JSON."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue

__all__ = ["JsonObject", "Number", "Part", "Text", "clean_text", "limit_text", "plain_json"]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
TEXT_LIMIT = 4000
"""Most characters of one text from a file that a report keeps; the file has the rest."""


def clean_text(text: str) -> str:
    """Replace lone surrogates by U+FFFD: JSON may hold them, UTF-8 may not."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def limit_text(text: str, limit: int = TEXT_LIMIT) -> str:
    """Cut a text to ``limit`` characters and say how many are missing."""
    text = clean_text(text)
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… [{len(text) - limit} more characters]"


def plain_json(value: Any) -> Any:
    """Turn a value into plain JSON, the same for the same value.

    Keys are sorted, lone surrogates replaced; ``nan`` and the infinities, which JSON does not
    have, become the strings ``nan``, ``inf`` and ``-inf``. What is no JSON value at all becomes
    the name of its type: its ``repr`` may hold a memory address.
    """
    match value:
        case None | bool():
            return value
        case str():
            return clean_text(value)
        case numbers.Integral():
            return int(value)
        case numbers.Real():
            return float(value) if math.isfinite(value) else str(float(value))
        case Mapping():
            items = {clean_text(str(key)): plain_json(item) for key, item in value.items()}
            return dict(sorted(items.items()))
        case list() | tuple():
            return [plain_json(item) for item in value]
        case set() | frozenset():
            return sorted((plain_json(item) for item in value), key=repr)
        case _:
            return f"<{type(value).__name__}>"


def _clean_if_text(value: object) -> object:
    return clean_text(value) if isinstance(value, str) else value


def _finite_or_none(value: object) -> object:
    if isinstance(value, numbers.Real) and not math.isfinite(value):
        return None
    return value


Text = Annotated[str, BeforeValidator(_clean_if_text)]
"""Text that may come from a file: any character but a lone surrogate. Not safe to print."""

Number = Annotated[float | None, BeforeValidator(_finite_or_none)]
"""A finite number, or null where there is none."""

JsonObject = Annotated[dict[str, JsonValue], BeforeValidator(plain_json)]
"""Free-form values under sorted keys."""


class Part(BaseModel):
    """Base of everything in a report."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )
