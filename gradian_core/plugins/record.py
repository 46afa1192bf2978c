"""What is known about each installed plugin and each thing that it provides."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

from gradian_core.errors import MissingExtraError
from gradian_core.specs import Spec
from gradian_core.versions import importable

__all__ = ["HOOK_OF", "Kind", "PluginRecord", "Provided", "State", "label", "missing"]

Kind = Literal["check", "clusterer", "engine", "metric", "run_reader", "sink", "trainer"]
"""What a plugin can add."""

HOOK_OF: Mapping[Kind, str] = {
    "check": "gradian_checks",
    "clusterer": "gradian_clusterers",
    "engine": "gradian_engines",
    "metric": "gradian_metrics",
    "run_reader": "gradian_run_readers",
    "sink": "gradian_sinks",
    "trainer": "gradian_trainers",
}
"""The hook that declares each kind."""

SpecT = TypeVar("SpecT", bound=Spec)


class State(enum.StrEnum):
    """How far a plugin can be used."""

    OK = "ok"
    BLOCKED = "blocked"
    FAILED = "failed"
    INCOMPATIBLE = "incompatible"
    CLASH = "clash"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRecord:
    """One installed plugin.

    Parameters
    ----------
    name
        Name of its entry point.
    distribution, version
        What installed it.
    module
        Module that the entry point names.
    state
        Whether it is used.
    reason
        Why not, in one line; for ``ok``, what of it cannot be used.
    provides
        What it declares, as ``(kind, spec)`` by kind and name. Empty unless it was loaded.
    error
        What it raised, for authors.
    """

    name: str
    distribution: str
    version: str
    module: str
    state: State
    reason: str = ""
    provides: tuple[tuple[Kind, Spec], ...] = ()
    error: BaseException | None = field(default=None, compare=False, repr=False)

    @property
    def owner(self) -> str:
        """Name, distribution, version and module, as error messages print them."""
        return f"{self.name}, {self.distribution} {self.version}, {self.module}"


class Provided(NamedTuple, Generic[SpecT]):
    """A spec and the plugin that it came from."""

    spec: SpecT
    plugin: PluginRecord

    @property
    def owner(self) -> str:
        """See :attr:`PluginRecord.owner`."""
        return self.plugin.owner


def label(kind: Kind, name: str) -> str:
    """Return kind and name as sentences have them: ``run reader trl``."""
    return f"{kind.replace('_', ' ')} {name}"


def missing(kind: Kind, spec: Spec) -> MissingExtraError | None:
    """Return the error for packages that a spec needs and that are not installed, or None."""
    absent = tuple(name for name in spec.requires if not importable(name))
    if not absent:
        return None
    return MissingExtraError(label(kind, spec.name).capitalize(), absent, spec.extra)
