"""The options of plugins, for people and for editors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel

from gradian_core.config.models import Config
from gradian_core.errors import PluginError
from gradian_core.plugins.failure import guard
from gradian_core.plugins.record import Kind, label, missing
from gradian_core.plugins.registry import Registry
from gradian_core.plugins.resolve import load_model

__all__ = ["config_schema", "option_rows", "own_options"]

Tell = Callable[[str], object]

_SECTION: dict[Kind, str] = {
    "clusterer": "clustering",
    "engine": "engine",
    "metric": "evaluation",
}
"""The section whose ``options`` hold those of each kind."""
_NAMES: dict[str, dict[str, Kind]] = {
    "ClusteringSection": {"method": "clusterer"},
    "EngineSection": {"name": "engine", "cross_check": "engine"},
    "EvaluationSection": {"metric": "metric"},
    "TrainSection": {"backend": "trainer"},
}
"""Settings that hold the name of something installed."""


def option_rows(model: type[BaseModel]) -> list[tuple[str, str, str]]:
    """Return ``(name, default, meaning)`` of each option."""
    rows = []
    for name, described in model.model_json_schema().get("properties", {}).items():
        default = (
            json.dumps(described["default"], ensure_ascii=False)
            if "default" in described
            else "(required)"
        )
        rows.append((name, default, " ".join(str(described.get("description", "")).split())))
    return rows


def own_options(registry: Registry, tell: Tell) -> dict[str, list[str]]:
    """Return the options that only one plugin knows, by section, as lines of YAML to comment out.

    Settings that their section has already are left out.

    Parameters
    ----------
    registry
        The plugins.
    tell
        Called with a sentence for each plugin whose model cannot be loaded: it is left out.
    """
    lines: dict[str, list[str]] = {}
    for kind, section in _SECTION.items():
        shared = {"seed", *type(getattr(Config(), section)).model_fields}
        for name, model, owner in _models(registry, kind, tell):
            rows = [row for row in option_rows(model) if row[0] not in shared]
            if rows:
                lines.setdefault(section, []).append(f"Options of {name}, from {owner}:")
                lines[section].append(f"{name}:")
                lines[section] += [f"  {key}: {default}" for key, default, _ in rows]
    return lines


def config_schema(registry: Registry, tell: Tell) -> dict[str, Any]:
    """Return a JSON schema of ``gradian.yaml`` with what is installed here, for editors.

    Parameters
    ----------
    registry, tell
        As for :func:`own_options`.
    """
    schema = Config.model_json_schema()
    for section, names in _NAMES.items():
        properties = schema["$defs"][section]["properties"]
        for field, kind in names.items():
            installed: list[str | None] = [
                name
                for (this, name), claimants in sorted(registry.claims.items())
                if this == kind and len(claimants) == 1
            ]
            if field == "cross_check":
                installed += ["none", None]
            # The default stays valid, whatever is missing here.
            default = properties[field].get("default")
            kept = {
                key: properties[field][key]
                for key in ("default", "description", "title")
                if key in properties[field]
            }
            properties[field] = {
                **kept,
                "enum": installed if default in installed else [*installed, default],
            }
    for kind, section in _SECTION.items():
        own = schema["$defs"][type(getattr(Config(), section)).__name__]["properties"]["options"]
        own["properties"] = {}
        own["additionalProperties"] = False
        for name, model, _ in _models(registry, kind, tell):
            described = model.model_json_schema(ref_template=f"#/$defs/{kind}.{name}.{{model}}")
            for inner, body in described.pop("$defs", {}).items():
                schema["$defs"][f"{kind}.{name}.{inner}"] = body
            own["properties"][name] = {**described, "additionalProperties": False}
    schema["properties"]["adapter"] = schema["properties"]["adapter_path"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _models(
    registry: Registry, kind: Kind, tell: Tell
) -> Iterator[tuple[str, type[BaseModel], str]]:
    """Yield name, model and distribution of whatever has options and the packages it needs."""
    for (this, name), claimants in sorted(registry.claims.items()):
        if this != kind or len(claimants) != 1 or missing(kind, claimants[0].spec):
            continue
        plugin = claimants[0].plugin
        what = f"Describing the options of {label(kind, name)}"
        try:
            with guard(plugin.owner, what):
                model = load_model(kind, claimants[0])
                if model is not None:
                    model.model_json_schema()
        except PluginError as error:
            tell(f"Left out: {error}")
        else:
            if model is not None:
                yield name, model, f"{plugin.distribution} {plugin.version}"
