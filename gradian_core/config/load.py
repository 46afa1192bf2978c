"""``gradian.yaml`` and the flags of the command line, made one :class:`Config`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradian_core.config.models import Config, Section
from gradian_core.config.problems import InvalidValues, Key, Problem, validate
from gradian_core.config.source import YamlFile, read_yaml
from gradian_core.errors import UsageError

__all__ = ["load_config"]

_PATHS = (
    "adapter_path",
    "base_model",
    "cache_dir",
    "dataset",
    "eval_dataset",
    "run_dir",
    "tokenizer",
)
_MOST_PROBLEMS = 10


def load_config(
    path: str | Path | None = None, overrides: Mapping[str, object] | None = None
) -> Config:
    """Read a config file and let other values override it.

    A relative path in the file is taken from the file's own folder if something is there, else
    from the working directory, and a leading ``~`` is the home folder. Overrides are always
    taken from the working directory.

    Parameters
    ----------
    path
        YAML file; None for the defaults.
    overrides
        Values by key, such as ``{"dataset": "train.jsonl", "engine.name": "graddot"}``. None
        means that a flag was not given, and changes nothing.

    Raises
    ------
    UsageError
        If a key is unknown, a value does not fit, or a key is given twice in different ways.
    InputError
        If the file cannot be read or is no YAML.
    """
    file = None if path is None else read_yaml(Path(path))
    values: dict[str, Any] = {} if file is None else _from_file(file)
    given = _from_overrides(overrides or {})
    for key, value in given.items():
        _put(values, key, value, file)
    try:
        return validate(Config, values)
    except InvalidValues as error:
        raise UsageError(
            "\n".join(_complaints(error.problems, file, given)),
            hint="Every key with its default: gradian init-config -o example.yaml.",
        ) from error


def _from_file(file: YamlFile) -> dict[str, Any]:
    values = _one_adapter(file.values, file)
    for name, field in Config.model_fields.items():
        is_section = isinstance(field.default, Section)
        # A section whose lines are all commented out reads as null.
        if is_section and name in values and values[name] is None:
            values[name] = {}
    for name in _PATHS:
        if isinstance(values.get(name), str):
            values[name] = _located(values[name], file.path.parent)
    return values


def _one_adapter(values: Mapping[str, Any], file: YamlFile | None) -> dict[str, Any]:
    """Read ``adapter`` as ``adapter_path``, and refuse two different ones."""
    values = dict(values)
    if "adapter" not in values:
        return values
    adapter = values.pop("adapter")
    if values.setdefault("adapter_path", adapter) != adapter:
        where = "" if file is None else f"{file.where(('adapter',))}: "
        raise UsageError(
            f"{where}adapter and adapter_path are the same key, and here they differ.",
            hint="Keep one of them.",
        )
    return values


def _located(value: str, folder: Path) -> str:
    path = Path(value).expanduser() if value.startswith("~") else Path(value)
    beside = folder / path
    if not value or path.is_absolute():
        return str(path) if value else value
    # A hub id such as "org/name" stays as it is unless there is a folder of that name.
    return str(beside) if beside.exists() else value


def _from_overrides(overrides: Mapping[str, object]) -> dict[Key, object]:
    given = {name: value for name, value in overrides.items() if value is not None}
    return {
        tuple(name.split(".")): str(value) if isinstance(value, Path) else value
        for name, value in _one_adapter(given, None).items()
    }


def _put(values: dict[str, Any], key: Key, value: object, file: YamlFile | None) -> None:
    *sections, name = map(str, key)
    inner: Any = values
    for depth, section in enumerate(sections):
        inner = inner.setdefault(section, {})
        if not isinstance(inner, dict):
            where = "" if file is None else f"{file.where(key[: depth + 1])}: "
            raise UsageError(f"{where}{section}: wants a section of keys.")
    inner[name] = value


def _complaints(
    problems: tuple[Problem, ...], file: YamlFile | None, given: Mapping[Key, object]
) -> list[str]:
    complaints = []
    for problem in problems[:_MOST_PROBLEMS]:
        where = ""
        if problem.key and any(key[: len(problem.key)] == problem.key for key in given):
            where = "As given on the command line, "
        elif file is not None:
            where = f"{file.where(problem.key)}: "
        text = str(problem)
        complaints.append(where + text + ("" if text.endswith("?") else "."))
    if len(problems) > _MOST_PROBLEMS:
        complaints.append(f"… and {len(problems) - _MOST_PROBLEMS} more.")
    return complaints
