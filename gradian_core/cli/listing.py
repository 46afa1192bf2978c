"""The registry as text and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from textwrap import shorten
from typing import TYPE_CHECKING

from gradian_core.cli.table import aligned
from gradian_core.plugins.record import missing

if TYPE_CHECKING:
    from gradian_core.plugins.record import PluginRecord
    from gradian_core.plugins.registry import Registry

__all__ = ["as_json", "as_text"]

_REASON = 40
"""Characters of a reason in a table; 'plugins show' and --json have the rest."""
_NAMES_WIDTH = 80
"""Longer lists of names would push all columns after them off every screen; -v has them."""

_HEAD = ("STATE", "NAME", "PROVIDES", "FROM", "REASON")


def as_text(registry: Registry, *, verbose: bool) -> str:
    """Return a table of plugins, one line each; what they provide follows if ``verbose``."""
    rows = [_HEAD, *(_row(record) for record in registry.plugins)]
    lines = aligned(rows)
    if verbose:
        lines += ["", *aligned(_details(registry))]
    lines += [f"note: {note}" for note in registry.notes]
    return "\n".join(lines)


def as_json(registry: Registry) -> str:
    """Return the plugins as a JSON object with a schema version."""
    plugins = [
        {
            "name": record.name,
            "distribution": record.distribution,
            "version": record.version,
            "module": record.module,
            "state": str(record.state),
            "reason": record.reason,
            "provides": [
                {
                    "kind": kind,
                    "name": spec.name,
                    "summary": spec.summary,
                    "factory": spec.factory,
                    "config": spec.config,
                    "requires": list(spec.requires),
                    "extra": spec.extra,
                    "since": spec.since,
                    "available": missing(kind, spec) is None,
                }
                for kind, spec in record.provides
            ],
        }
        for record in registry.plugins
    ]
    body = {"schema_version": "1.0", "plugins": plugins, "notes": list(registry.notes)}
    return json.dumps(body, indent=2)


def _row(record: PluginRecord) -> tuple[str, ...]:
    provides = ", ".join(spec.name for _, spec in record.provides)
    if len(provides) > _NAMES_WIDTH:
        kinds = Counter(kind for kind, _ in record.provides)
        provides = ", ".join(f"{n} {kind}{'s' * (n > 1)}" for kind, n in kinds.items())
    origin = f"{record.distribution} {record.version}"
    return (
        record.state,
        record.name,
        provides or "-",
        origin,
        shorten(record.reason, _REASON, placeholder=" ..."),
    )


def _details(registry: Registry) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("KIND", "NAME", "PLUGIN", "SUMMARY")]
    for record in registry.plugins:
        plugin = f"{record.name} ({record.module})"
        rows += [(kind, spec.name, plugin, spec.summary) for kind, spec in record.provides]
    return rows
