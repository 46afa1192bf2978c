"""What the readers of YAML configs share: finding the file, and translating its keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from gradian_core.errors import InputError
from gradian_core.runs.artifact import Basis, Value
from gradian_core.runs.evidence import found
from gradian_core.runs.settings import coerce

from ._files import Remarks, files_of, head
from ._yaml import YamlConfig, read_yaml

__all__ = ["asked", "config_of", "defaults", "flag", "has_config", "is_config", "yaml_files"]

_SUFFIXES = frozenset({".yaml", ".yml"})
_MOST_CONFIGS = 40
_KEY = re.compile(r"^([A-Za-z_]\w{0,60}):", re.MULTILINE)
_COMPONENT = re.compile(r"^ {1,20}_component_: *(\S{1,200})", re.MULTILINE)

Test = Callable[[Mapping[str, Any]], bool]


def is_config(path: Path, test: Test) -> bool:
    """Return whether a file is a YAML mapping that passes a test."""
    if path.suffix.lower() not in _SUFFIXES or not path.is_file():
        return False
    stat = path.stat()
    return test(_values(path, stat.st_size, stat.st_mtime_ns))


@lru_cache(maxsize=16)
def _values(path: Path, _size: int, _time: int) -> Mapping[str, Any]:
    """Return what a file holds; every reader asks the same file."""
    try:
        return read_yaml(path).values
    except InputError:
        # a damaged config is still its tool's, whose reader then says what is wrong with it
        text = head(path)
        values: dict[str, Any] = dict.fromkeys(_KEY.findall(text))
        if component := _COMPONENT.search(text):
            values["component"] = {"_component_": component[1]}
        return values
    except OSError:
        return {}


def has_config(path: Path, test: Test) -> bool:
    """Return whether a path is or holds a config that passes a test, sound or damaged."""
    return is_config(path, test) if path.is_file() else bool(yaml_files(path, test))


def yaml_files(folder: Path, test: Test) -> list[Path]:
    """Return the configs in a folder that pass a test."""
    names = [*files_of(folder, "*.yaml"), *files_of(folder, "*.yml")]
    return [path for path in names[:_MOST_CONFIGS] if is_config(path, test)]


def config_of(
    path: Path, test: Test, remarks: Remarks, preferred: Iterable[str] = ()
) -> YamlConfig | None:
    """Read the config that a path names or holds; None where there is none.

    Of several in a folder, one with a preferred name is taken, else the last by name, and the
    others are said.
    """
    if path.is_file():
        candidates = [path] if is_config(path, test) else []
    else:
        candidates = yaml_files(path, test)
    if not candidates:
        return None
    chosen = next((c for name in preferred for c in candidates if c.name == name), candidates[-1])
    if len(candidates) > 1:
        others = ", ".join(c.name for c in candidates if c != chosen)
        remarks.note(f"Of several configs {chosen.name} was read, and not {others}.")
    config = remarks.attempt(chosen, read_yaml)
    for note in config.notes if config else ():
        remarks.note(note)
    return config


def flag(value: Any) -> bool | None:
    """Return a switch of a config, which may be a word; None for anything else."""
    switch = coerce("packing", value)
    return switch if isinstance(switch, bool) else None


def asked(config: YamlConfig, names: Mapping[str, str], basis: Basis = "asked") -> dict[str, Value]:
    """Return the settings of a config, each with its line.

    Parameters
    ----------
    config
        The config.
    names
        The tool's key, dotted where it is nested -> the normalised name. An empty key is null,
        which the tools read as absent.
    basis
        ``ran`` for a file that the tool wrote and not the user.
    """
    values: dict[str, Value] = {}
    for key, name in names.items():
        path = tuple(key.split("."))
        value: Any = config.values
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            values |= found({name: value}, config.where(*path), basis)
    return values


def defaults(tool: str, values: Mapping[str, Any], basis: Basis = "default") -> dict[str, Value]:
    """Return a tool's defaults; a value may be a pair of the value and a remark on it."""
    settings: dict[str, Value] = {}
    for name, given in values.items():
        value, remark = given if isinstance(given, tuple) else (given, "")
        origin = f"default of {tool}" + (f" ({remark})" if remark else "")
        settings[name] = Value(value, origin, basis)
    return settings
