"""The public surface of plugin API v1 as text, so that every change to it is seen.

Write docs/contract.txt with ``python -m gradian_core.testing.contract``.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from gradian_core.files import write_atomic
from gradian_core.hookspecs import GROUP, HOOKS

__all__ = ["MODULES", "contract_text"]

MODULES = (
    "gradian_core.hookspecs",
    "gradian_core.specs",
    "gradian_core.protocols",
    "gradian_core.check",
    "gradian_core.findings",
    "gradian_core.errors",
    "gradian_core.audit.facts",
    "gradian_core.audit.samples",
    "gradian_core.data.example",
    "gradian_core.files",
    "gradian_core.report.model",
    "gradian_core.runs.artifact",
    "gradian_core.testing",
    "gradian_core.testing.blocks",
    "gradian_core.testing.facts",
    "gradian_core.testing.fixtures",
    "gradian_core.testing.hostile",
    "gradian_core.testing.pytest_plugin",
    "gradian_core.testing.reports",
    "gradian_core.testing.tasks",
    "gradian_core.text",
)
"""What plugins may import. Everything else may change in any release."""


def contract_text() -> str:
    """Return every public name with its signature, fields or members, one on a line."""
    lines = [f"group {GROUP}", ""]
    lines += [f"hook {name}() -> Iterable[{spec.__name__}]" for name, spec in sorted(HOOKS.items())]
    for name in MODULES:
        module = import_module(name)
        lines += ["", f"module {name}"]
        for public in sorted(module.__all__):
            lines += [f"  {line}" for line in _described(public, getattr(module, public))]
    return "\n".join(lines) + "\n"


def _described(name: str, thing: Any) -> Iterator[str]:
    if not isinstance(thing, type):
        if inspect.isfunction(thing):
            yield f"{name}{_signature(thing)}"
        elif isinstance(thing, frozenset):
            yield f"{name}: {', '.join(sorted(thing))}"
        else:
            yield name
        return
    bases = ", ".join(base.__name__ for base in thing.__bases__ if base is not object)
    yield f"class {name}({bases})" if bases else f"class {name}"
    if issubclass(thing, enum.Enum):
        yield from (f"  {member.name} = {member.value!r}" for member in thing)
        return
    fields: set[str] = set()
    if issubclass(thing, BaseModel):
        fields = set(thing.model_fields)
        for field, annotation in thing.__annotations__.items():
            if field in fields:
                yield f"  {field}: {annotation}"
    elif dataclasses.is_dataclass(thing):
        fields = {field.name for field in dataclasses.fields(thing)}
        yield f"  __init__{_signature(thing.__init__)}"
    elif "__init__" in vars(thing) and not getattr(thing, "_is_protocol", False):
        yield f"  __init__{_signature(thing.__init__)}"
    for member, value in sorted(vars(thing).items()):
        if member.startswith("_") or member in fields:
            continue
        if isinstance(value, property):
            returned = inspect.signature(value.fget).return_annotation if value.fget else ""
            yield f"  {member}: {returned}"
        elif isinstance(value, (classmethod, staticmethod)):
            yield f"  {type(value).__name__} {member}{_signature(value.__func__)}"
        elif inspect.isfunction(value):
            yield f"  {member}{_signature(value)}"


def _signature(function: Any) -> str:
    return str(inspect.signature(function))


if __name__ == "__main__":
    path = Path(__file__).parents[2] / "docs" / "contract.txt"
    write_atomic(path, contract_text())
