"""Messages of a row, in every dialect that data sets use, as turns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gradian_core.data.example import Turn
from gradian_core.errors import InputError

__all__ = ["kind_of", "parse_text", "parse_tools", "parse_turns"]

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "chatgpt": "assistant",
    "function_call": "assistant",
    "tool": "tool",
    "function": "tool",
    "tool_response": "tool",
    "observation": "tool",
    "ipython": "tool",
}
"""Role names that are understood, and the role that each of them is."""

_ROLE_KEYS = ("role", "from")
_CONTENT_KEYS = ("content", "value")
_KINDS = {
    type(None): "null",
    bool: "true or false",
    str: "a string",
    int: "a number",
    float: "a number",
    list: "a list",
    tuple: "a list",
    dict: "an object",
}


def kind_of(value: object) -> str:
    """Name the JSON kind of a value for a message."""
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def parse_text(value: object, key: str, where: str) -> str:
    """Return a string that every tokenizer can take.

    Raises
    ------
    InputError
        If it is no string, or holds half of a surrogate pair (what is left of an emoji that was
        cut in two), which is no text and which no tokenizer accepts.
    """
    if not isinstance(value, str):
        raise InputError(f"{where}: '{key}' is {kind_of(value)}; a string is needed.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: '{key}' holds the lone surrogate {value[error.start]!r} at character "
            f"{error.start}: half of a character that was cut in two.",
            hint="Remove it from the row.",
        ) from None
    return value


def parse_turns(value: object, key: str, where: str) -> tuple[Turn, ...]:
    """Return the turns of a list of messages.

    Parameters
    ----------
    value
        List of ``{role, content}`` or ``{from, value}`` objects.
    key
        Key of the row that holds it, for messages.
    where
        File and line, for messages.

    Raises
    ------
    InputError
        For an empty list, an unknown role, content that is no text.
    """
    if not isinstance(value, (list, tuple)):
        raise InputError(f"{where}: '{key}' is {kind_of(value)}; a list of messages is needed.")
    if not value:
        raise InputError(f"{where}: '{key}' is an empty list.", hint="Remove the row.")
    return tuple(_turn(item, f"{key}[{i}]", where) for i, item in enumerate(value))


def parse_tools(value: object, where: str) -> tuple[Mapping[str, Any], ...]:
    """Return the tool schemas of a row: a list of objects, or such a list as a JSON string."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        value = _embedded_json(value, "tools", where)
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, Mapping) for v in value):
        raise InputError(f"{where}: 'tools' is {kind_of(value)}; a list of objects is needed.")
    tools = tuple(dict(tool) for tool in value)
    _check_json(tools, "tools", where)
    return tools


def _turn(message: object, key: str, where: str) -> Turn:
    if not isinstance(message, Mapping):
        raise InputError(f"{where}: '{key}' is {kind_of(message)}; an object is needed.")
    name_key = _first(message, _ROLE_KEYS)
    if name_key is None:
        raise InputError(
            f"{where}: '{key}' names no role; its keys are {sorted(map(str, message))}.",
            hint="A message is {role, content} or {from, value}.",
        )
    name = message[name_key]
    role = ROLES.get(name.lower()) if isinstance(name, str) else None
    if role is None:
        raise InputError(
            f"{where}: '{key}.{name_key}' is {name!r}, which is no known role.",
            hint=f"Known roles: {', '.join(ROLES)}.",
        )
    extra = {
        str(k): v
        for k, v in message.items()
        if k not in (*_ROLE_KEYS, *_CONTENT_KEYS) and v is not None
    }
    content_key = _first(message, _CONTENT_KEYS)
    if isinstance(name, str) and name.lower() == "function_call":
        call = _embedded_json(message.get(content_key or "value"), f"{key}.value", where)
        calls = call if isinstance(call, list) else [call]
        extra["tool_calls"] = [{"type": "function", "function": c} for c in calls]
        content_key = None
    if extra:
        _check_json(extra, key, where)
    if content_key is None:
        if not extra.get("tool_calls"):
            raise InputError(
                f"{where}: '{key}' has no content.",
                hint="Only an assistant message with tool_calls may go without.",
            )
        return Turn(role, "", extra)
    content = _content(message[content_key], f"{key}.{content_key}", where)
    return Turn(role, content, extra)


def _content(value: object, key: str, where: str) -> str:
    if not isinstance(value, (list, tuple)):
        return parse_text(value, key, where)
    texts = []
    for i, part in enumerate(value):
        kind = part.get("type", "text") if isinstance(part, Mapping) else kind_of(part)
        if not isinstance(part, Mapping) or kind != "text":
            raise InputError(
                f"{where}: '{key}[{i}]' is a part of type {kind!r}; only text parts are read.",
                hint="Gradian attributes text; leave rows with other parts out.",
            )
        text_key = _first(part, ("text", "value")) or "text"
        texts.append(parse_text(part.get(text_key), f"{key}[{i}].{text_key}", where))
    return "".join(texts)


def _first(mapping: Mapping[Any, Any], keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if mapping.get(key) is not None), None)


def _embedded_json(value: object, key: str, where: str) -> Any:
    text = parse_text(value, key, where)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{where}: '{key}' is a string, but not JSON: {text[:60]!r}.") from None


def _check_json(value: object, key: str, where: str) -> None:
    # Templates write these values as JSON; what cannot be written must not surface there.
    try:
        json.dumps(value, ensure_ascii=False, sort_keys=True).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{where}: '{key}' cannot be written as JSON: {error}.") from None
