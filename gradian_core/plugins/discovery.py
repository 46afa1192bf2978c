"""Which plugins are installed: package metadata only, nothing is imported.

``importlib.metadata.entry_points()`` would read every distribution at once, and one with a
damaged ``entry_points.txt`` would take all plugins down with it, hence the loop here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from importlib.metadata import Distribution, EntryPoint

from gradian_core.hookspecs import GROUP
from gradian_core.plugins.failure import describe
from gradian_core.text import safe_text

__all__ = ["BUILT_IN", "Candidate", "canonical", "discover"]

_UNKNOWN = "unknown"

BUILT_IN = "gradian-ml"
"""The distribution that holds this package and the built-in plugins."""

_FAMILY = re.compile(r"gradian\.v\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An entry point that claims to be a plugin.

    Parameters
    ----------
    name
        Name of the entry point.
    group
        Its group; another one than :data:`~gradian_core.hookspecs.GROUP` is another plugin API.
    module
        What it points to, as written.
    distribution, version
        What installed it; ``unknown`` where the metadata do not say.
    entry_point
        The entry point itself; None if the metadata could not be read.
    problem
        Why it cannot be used, found without importing it. Empty if nothing was.
    """

    name: str
    group: str
    module: str
    distribution: str
    version: str
    entry_point: EntryPoint | None
    problem: str = ""


def canonical(distribution: str) -> str:
    """Return a distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def discover() -> tuple[Candidate, ...]:
    """Find all plugins, built-in ones first, then by distribution and name.

    An entry point for another plugin API is left out if its distribution offers the same name
    for this one.
    """
    found: list[Candidate] = []
    seen: set[str] = set()
    for distribution in metadata.distributions():
        candidates = _candidates(distribution)
        names = {canonical(c.distribution) for c in candidates} - {_UNKNOWN}
        # A distribution that is on the path twice counts once: the first, as for imports.
        if not names & seen:
            seen |= names
            found += candidates
    return tuple(sorted(found, key=_order))


def _candidates(distribution: Distribution) -> list[Candidate]:
    try:
        points = [p for p in distribution.entry_points if _FAMILY.fullmatch(p.group)]
    except Exception as error:  # noqa: BLE001 - whatever the metadata hold has an owner
        if not _may_be_ours(distribution):
            return []
        name, version = _identity(distribution)
        return [
            Candidate(
                name=_UNKNOWN,
                group=GROUP,
                module=_UNKNOWN,
                distribution=name,
                version=version,
                entry_point=None,
                problem=f"its entry points cannot be read: {describe(error)}",
            )
        ]
    if not points:
        return []
    name, version = _identity(distribution)
    ours = {point.name for point in points if point.group == GROUP}
    modules = _modules(points)
    return [
        Candidate(
            name=safe_text(point.name),
            group=point.group,
            module=safe_text(point.value),
            distribution=name,
            version=version,
            entry_point=point,
            problem=(
                "its distribution declares this name twice, with different modules"
                if len(modules[point.group, point.name]) > 1
                else ""
            ),
        )
        # The same line twice is harmless: the dict keeps one.
        for point in {(p.group, p.name, p.value): p for p in points}.values()
        if point.group == GROUP or point.name not in ours
    ]


def _modules(points: Iterable[EntryPoint]) -> dict[tuple[str, str], set[str]]:
    modules: dict[tuple[str, str], set[str]] = {}
    for point in points:
        modules.setdefault((point.group, point.name), set()).add(point.value)
    return modules


def _identity(distribution: Distribution) -> tuple[str, str]:
    try:
        found = distribution.metadata
        # A missing key is None in older Pythons and an error in newer ones.
        present = {key: found[key] for key in ("Name", "Version") if key in found}
    except Exception:  # noqa: BLE001 - see above
        present = {}
    name, version = present.get("Name"), present.get("Version")
    return safe_text(name or _UNKNOWN), safe_text(version or _UNKNOWN)


def _may_be_ours(distribution: Distribution) -> bool:
    try:
        return "gradian.v" in (distribution.read_text("entry_points.txt") or "")
    except Exception:  # noqa: BLE001 - not even text, so nobody can tell
        return True


def _order(candidate: Candidate) -> tuple[bool, str, str, str, str]:
    distribution = canonical(candidate.distribution)
    return (
        distribution != BUILT_IN,
        distribution,
        candidate.group,
        candidate.name,
        candidate.module,
    )
