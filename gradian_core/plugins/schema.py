"""The options of plugins, for people and for editors."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from gradian_core.plugins.record import Kind, missing
from gradian_core.plugins.registry import Registry
from gradian_core.plugins.resolve import load_model

__all__ = ["option_rows", "plugin_models"]


def option_rows(model: type[BaseModel]) -> list[tuple[str, str, str]]:
    """Return ``(name, default, meaning)`` of each option."""
    schema = model.model_json_schema()
    rows = []
    for name, described in schema.get("properties", {}).items():
        default = (
            json.dumps(described["default"], ensure_ascii=False)
            if "default" in described
            else "(required)"
        )
        rows.append((name, default, " ".join(str(described.get("description", "")).split())))
    return rows


def plugin_models(registry: Registry, kind: Kind) -> dict[str, tuple[type[BaseModel], Any]]:
    """Return the options of what plugins provide, by name: model and who provides it.

    What lacks a package is left out; a model that cannot be loaded is an error of its plugin.

    Raises
    ------
    PluginError
        See :func:`gradian_core.plugins.resolve.load_model`.
    """
    found = {}
    for (this, name), claimants in sorted(registry.claims.items()):
        if this != kind or len(claimants) != 1 or missing(kind, claimants[0].spec):
            continue
        model = load_model(kind, claimants[0])
        if model is not None:
            found[name] = (model, claimants[0])
    return found
