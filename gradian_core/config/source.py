"""Reading a YAML file with the line of every key, trusting nothing in it.

PyYAML reads YAML 1.1, in which ``2e-4`` is text, ``017`` is fifteen and ``1:30`` is ninety. Numbers
here are the ones that people mean: decimal, with an exponent where they have one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import yaml

from gradian_core.config.problems import Key
from gradian_core.errors import InputError
from gradian_core.text import excerpt, safe_text

__all__ = ["YamlFile", "read_yaml"]

_MOST_BYTES = 1 << 20
_MOST_DEPTH = 32
_TAG = "tag:yaml.org,2002:"
_TAGS = {_TAG + kind for kind in ("bool", "float", "int", "map", "merge", "null", "seq", "str")}


@dataclass(frozen=True, slots=True)
class YamlFile:
    """The content of a YAML file and where it stands.

    Parameters
    ----------
    path
        The file.
    values
        Plain values: dicts, lists, text, numbers, booleans, None.
    lines
        Line (from 1) of each key and list item.
    """

    path: Path
    values: dict[str, Any]
    lines: Mapping[Key, int]

    def where(self, key: Key) -> str:
        """Return ``file:line`` of a key, or of the innermost section that is there."""
        while key and key not in self.lines:
            key = key[:-1]
        return f"{self.path}:{self.lines[key]}" if key else str(self.path)


def read_yaml(path: Path) -> YamlFile:
    """Read a YAML file whose root is a mapping; an empty file is an empty mapping.

    Raises
    ------
    InputError
        If the file is missing, too large, no UTF-8, no YAML or no mapping, if a key stands
        twice, or if it uses aliases (``*name``): a few of them expand to gigabytes.
    """
    text = _read_text(path)
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None or (isinstance(node, yaml.ScalarNode) and _plain(loader, node) is None):
            return YamlFile(path, {}, {})
        if not isinstance(node, yaml.MappingNode):
            raise InputError(f"{path} must hold 'key: value' lines.")
        lines: dict[Key, int] = {}
        return YamlFile(path, _mapping(loader, node, (), lines, path), lines)
    except yaml.YAMLError as error:
        raise InputError(_syntax_problem(path, error)) from error


class _Loader(yaml.SafeLoader):
    """Safe, without aliases, of bounded depth, and with the numbers that people mean."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            self._refuse("aliases (*name) are not read")
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            self._refuse("nested too deeply")
        try:
            node = super().compose_node(parent, index)
        finally:
            self.depth -= 1
        # A tag asks for a type, and Python ones for code; only what YAML has by itself is read.
        if node is not None and node.tag not in _TAGS:
            problem = f"the tag {excerpt(node.tag, 60)} is not read"
            raise yaml.composer.ComposerError(None, None, problem, node.start_mark)
        return node

    def _refuse(self, problem: str) -> NoReturn:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # not in the stubs
        raise yaml.composer.ComposerError(None, None, problem, mark)


def _number_resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Return PyYAML's rules with its numbers and dates replaced."""
    replaced = {_TAG + kind for kind in ("int", "float", "timestamp", "value")}
    rules = {
        first: [rule for rule in known if rule[0] not in replaced]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    integer = re.compile(r"[-+]?[0-9][0-9_]*\Z")
    real = re.compile(
        r"(?:[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    )
    for first in "-+.0123456789":
        rules.setdefault(first, []).extend([(f"{_TAG}int", integer), (f"{_TAG}float", real)])
    return rules


def _whole_number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    return int(str(loader.construct_scalar(node)).replace("_", ""))


_Loader.yaml_implicit_resolvers = _number_resolvers()
_Loader.add_constructor(f"{_TAG}int", _whole_number)


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(data) > _MOST_BYTES:
        raise InputError(f"{path} is larger than {_MOST_BYTES >> 20} MiB, which no config is.")
    try:
        # Windows editors put a byte order mark in front.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line} is not UTF-8.", hint="Save it as UTF-8.") from error


def _mapping(
    loader: _Loader, node: yaml.MappingNode, key: Key, lines: dict[Key, int], path: Path
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name_node, value_node in node.value:
        line = name_node.start_mark.line + 1
        if not isinstance(name_node, yaml.ScalarNode):
            raise InputError(f"{path}:{line}: a key must be a word.")
        name = name_node.value
        if name in values:
            first = lines[*key, name]
            raise InputError(
                f"{path}:{line}: the key {excerpt(name, 80)} stands here and in line {first}.",
                hint="Keep one of them.",
            )
        lines[*key, name] = line
        values[name] = _value(loader, value_node, (*key, name), lines, path)
    return values


def _value(loader: _Loader, node: yaml.Node, key: Key, lines: dict[Key, int], path: Path) -> object:
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, key, lines, path)
    if isinstance(node, yaml.SequenceNode):
        items = []
        for position, item in enumerate(node.value):
            lines[*key, position] = item.start_mark.line + 1
            items.append(_value(loader, item, (*key, position), lines, path))
        return items
    return _plain(loader, node)


def _plain(loader: _Loader, node: yaml.Node) -> object:
    try:
        return loader.construct_object(node, deep=True)
    except ValueError as error:
        problem = f"{excerpt(str(node.value), 40)} is no number that can be read"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


def _syntax_problem(path: Path, error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"{path} is no YAML: {excerpt(str(error), 200)}."
    mark = error.problem_mark or error.context_mark
    where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
    return f"{where}: not valid YAML: {safe_text(error.problem or error.context or 'unreadable')}."
