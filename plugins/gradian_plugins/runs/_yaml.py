"""A config in YAML as its tool sees it, with the line of every key.

The files are strangers': they are read from the parser's events, so that nothing recurses and
nothing is built but plain values. A tag asks for a type, and Python ones for code: the value
behind it is kept as text or list and the tag is said. Aliases are followed up to a limit, because
a few of them expand to gigabytes. Scalars follow YAML 1.1, as PyYAML gives them to the tools;
numbers that it leaves as text (``2e-4``) are made numbers by :func:`settings.coerce`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml

from gradian_core.errors import InputError
from gradian_core.text import excerpt

from ._files import text_of

__all__ = ["YamlConfig", "parse_yaml", "read_yaml"]

_MOST_BYTES = 1 << 19
_MOST_DEPTH = 40
_MOST_NODES = 50_000
_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN = "tag:yaml.org,2002:"
_KNOWN = {_PLAIN + kind for kind in ("bool", "float", "int", "map", "null", "seq", "str", "set")}

Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class YamlConfig:
    """Values of a YAML mapping and where they stand.

    Parameters
    ----------
    name
        Name of the file, for sources.
    values
        Plain values.
    lines
        Line of each key, by path.
    notes
        What was passed over.
    """

    name: str
    values: dict[str, Any]
    lines: Mapping[Key, int]
    notes: tuple[str, ...] = ()

    def where(self, *key: str | int) -> str:
        """Return ``file:line`` of a key."""
        line = self.lines.get(key)
        return self.name if line is None else f"{self.name}:{line}"


def read_yaml(path: Path) -> YamlConfig:
    """Read a YAML file.

    Raises
    ------
    InputError
        If it is too large, too deep, no YAML, or no mapping.
    """
    return parse_yaml(text_of(path, _MOST_BYTES), path.name)


def parse_yaml(text: str, name: str, first_line: int = 1) -> YamlConfig:
    """Read a YAML mapping from text that starts at ``first_line`` of the file ``name``.

    Raises
    ------
    InputError
        As :func:`read_yaml`.
    """
    builder = _Builder(name, first_line)
    try:
        parser = _PARSER(text)
        try:
            while parser.check_event():
                builder.take(parser.get_event())
        finally:
            parser.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + first_line}" if mark else name
        problem = excerpt(error.problem or error.context or "unreadable", 120)
        raise InputError(f"{where}: not valid YAML: {problem}.") from error
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"{name}: not valid YAML: {excerpt(str(error), 120)}.") from error
    if builder.root is None:
        return YamlConfig(name, {}, {})
    if not isinstance(builder.root, dict):
        raise InputError(f"{name} holds no 'key: value' lines.")
    return YamlConfig(name, builder.root, builder.lines, tuple(builder.notes))


@dataclass(slots=True)
class _Open:
    """A mapping or list that is being read."""

    value: Any
    path: Key
    size_before: int
    anchor: str | None
    key: str | None = None
    merges: bool = False
    merged: list[Any] = field(default_factory=list)


class _Builder:
    def __init__(self, name: str, first_line: int) -> None:
        self.name, self.first_line = name, first_line
        self.root: Any = None
        self.lines: dict[Key, int] = {}
        self.notes: list[str] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._size = 0
        self._done = False
        self._scalars = yaml.SafeLoader("")

    def take(self, event: yaml.Event) -> None:
        """Take the next event of the parser."""
        if self._done and not isinstance(event, (yaml.DocumentEndEvent, yaml.StreamEndEvent)):
            if isinstance(event, yaml.DocumentStartEvent):
                self._note("only the first of several documents was read")
            return
        match event:
            case yaml.ScalarEvent():
                self._grow(1, event)
                self._add(self._scalar(event), event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self._start(event)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._end(event)
            case yaml.DocumentEndEvent():
                self._done = True
            case _:
                pass

    def _start(self, event: yaml.NodeEvent) -> None:
        self._grow(1, event)
        if len(self._open) >= _MOST_DEPTH:
            self._refuse(event, "nested too deeply")
        self._tag(event)
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            self._refuse(event, "a key must be a word")
        self._open.append(_Open(value, self._path(), self._size, event.anchor))

    def _end(self, event: yaml.Event) -> None:
        closed = self._open.pop()
        for other in closed.merged:
            for key, value in other.items() if isinstance(other, dict) else ():
                closed.value.setdefault(key, value)
        if closed.anchor:
            self._anchors[closed.anchor] = (closed.value, self._size - closed.size_before + 1)
        self._add(closed.value, event, anchored=True)

    def _alias(self, event: yaml.AliasEvent) -> None:
        name = str(event.anchor)
        if name not in self._anchors:
            self._refuse(event, f"the alias {excerpt(name, 40)} stands for nothing")
        value, size = self._anchors[name]
        self._grow(size, event)
        self._add(value, event, anchored=True)

    def _add(self, value: Any, event: yaml.Event, *, anchored: bool = False) -> None:
        anchor = None if anchored else getattr(event, "anchor", None)
        if anchor:
            self._anchors[anchor] = (value, 1)
        if not self._open:
            self.root = value
            return
        top = self._open[-1]
        if isinstance(top.value, list):
            self.lines.setdefault(self._path(), self._line(event))
            top.value.append(value)
        elif top.key is None:
            self._take_key(top, value, event)
        elif top.merges:
            top.merged.extend(value if isinstance(value, list) else [value])
            top.key = None
        else:
            top.value[top.key] = value
            top.key = None

    def _take_key(self, top: _Open, value: Any, event: yaml.Event) -> None:
        if isinstance(value, (dict, list)):
            self._refuse(event, "a key must be a word")
        top.key = value if isinstance(value, str) else str(value)
        # in quotation marks it is a key like any other
        top.merges = value == "<<" and not getattr(event, "style", None)
        if top.key in top.value:
            first = self.lines[(*top.path, top.key)]
            self._note(
                f"line {self._line(event)}: {excerpt(top.key, 60)} stands in line {first} too; "
                "the later one counts"
            )
        self.lines[(*top.path, top.key)] = self._line(event)

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        tag = event.tag
        if tag is None or tag == "!":
            tag = self._scalars.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]  # not in the stubs
        elif tag not in _KNOWN:
            self._tag(event)
            return event.value
        if tag == _PLAIN + "timestamp":
            return event.value
        node = yaml.ScalarNode(tag, event.value)
        try:
            return self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError):
            return event.value

    def _tag(self, event: yaml.NodeEvent) -> None:
        tag = getattr(event, "tag", None)
        if tag not in (None, "!") and tag not in _KNOWN:
            shown = excerpt(str(tag), 60)
            self._note(f"line {self._line(event)}: the tag {shown} was not followed")

    def _path(self) -> Key:
        if not self._open:
            return ()
        top = self._open[-1]
        return (*top.path, len(top.value) if isinstance(top.value, list) else top.key or "")

    def _grow(self, by: int, event: yaml.Event) -> None:
        self._size += by
        if self._size > _MOST_NODES:
            self._refuse(event, f"more than {_MOST_NODES:,} values, aliases included")

    def _line(self, event: yaml.Event) -> int:
        return self.first_line + (event.start_mark.line if event.start_mark else 0)

    def _refuse(self, event: yaml.Event, problem: str) -> NoReturn:
        raise InputError(f"{self.name}:{self._line(event)}: {problem}.")

    def _note(self, text: str) -> None:
        if len(self.notes) < 20:
            self.notes.append(f"{self.name}, {text}.")
