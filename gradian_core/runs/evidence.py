"""Which of several pieces of evidence about a setting counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradian_core.runs.artifact import Basis, Value
from gradian_core.runs.settings import coerce

__all__ = ["found", "rank", "settle"]

_ORDER: tuple[Basis, ...] = ("ran", "asked", "inferred", "default")


def rank(basis: Basis) -> int:
    """Return 0 for the best kind of evidence, more for weaker ones."""
    return _ORDER.index(basis)


def found(values: Mapping[str, Any], source: str, basis: Basis) -> dict[str, Value]:
    """Return settings that all come from one place, each made the type that it wants."""
    return {name: Value(coerce(name, value), source, basis) for name, value in values.items()}


def settle(
    layers: Iterable[Mapping[str, Value]],
) -> tuple[dict[str, Value], dict[str, Value]]:
    """Choose the best evidence for each setting.

    Parameters
    ----------
    layers
        What each source says; of two that are equally good, the earlier one counts.

    Returns
    -------
    tuple
        The chosen values, and beside them what was asked for where a record of what really ran
        was chosen.
    """
    values: dict[str, Value] = {}
    asked: dict[str, Value] = {}
    for layer in layers:
        for name, value in layer.items():
            if name not in values or rank(value.basis) < rank(values[name].basis):
                values[name] = value
            if value.basis == "asked":
                asked.setdefault(name, value)
    requested = {name: value for name, value in asked.items() if values[name].basis == "ran"}
    return values, requested
