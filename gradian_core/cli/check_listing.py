"""The installed checks as text and as JSON, from what their plugins declare."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING

from gradian_core.audit.reference import options_of
from gradian_core.cli.table import aligned
from gradian_core.text import safe_text

if TYPE_CHECKING:
    from gradian_core.plugins.record import Provided
    from gradian_core.plugins.registry import Registry
    from gradian_core.specs import CheckSpec

__all__ = ["as_json", "as_text", "page"]


def as_text(registry: Registry) -> str:
    """Return the checks by family: the core ones first, then the further ones."""
    checks = list(registry.checks.values())
    core = sum(provided.spec.core for provided in checks)
    lines = [f"{len(checks)} checks: {core} core, {len(checks) - core} further (+)."]
    ordered = sorted(checks, key=lambda p: (_family(p), not p.spec.core, p.spec.name))
    for family, members in groupby(ordered, key=_family):
        found = list(members)
        lines += ["", f"{safe_text(family)}: {len(found)} checks"]
        lines += [f"  {line}" for line in aligned([_row(provided) for provided in found])]
    return "\n".join(lines)


def as_json(registry: Registry) -> str:
    """Return the checks as a JSON object with a schema version."""
    checks = [
        {
            "id": provided.spec.name,
            "family": _family(provided),
            "summary": provided.spec.summary,
            "core": provided.spec.core,
            "needs": list(provided.spec.needs),
            "since": provided.spec.since,
            "plugin": provided.owner,
        }
        for provided in registry.checks.values()
    ]
    return json.dumps({"schema_version": "1.0", "checks": checks}, indent=2)


def page(registry: Registry, name: str) -> str:
    """Return the documentation of a check; this imports the check.

    Raises
    ------
    UsageError
        If there is no such check.
    PluginError
        If it cannot be loaded.
    """
    provided = registry.find("check", name)
    found = registry.create("check", name)
    facts = [
        ("needs", options_of(found.needs) or "nothing"),
        ("uses, if given", options_of(found.wants) or "nothing more"),
        ("worst severity", str(found.severity)),
        ("since", found.since),
        ("plugin", provided.owner),
    ]
    head = [safe_text(f"{name}: {provided.spec.summary}"), "", *aligned(facts), ""]
    return "\n".join([*head, safe_text(found.page, multiline=True)])


def _row(provided: Provided[CheckSpec]) -> tuple[str, ...]:
    spec = provided.spec
    return ("" if spec.core else "+", spec.name, spec.summary, options_of(spec.needs))


def _family(provided: Provided[CheckSpec]) -> str:
    return provided.spec.name.partition(".")[0]
