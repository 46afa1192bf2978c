"""Which settings of ``gradian.yaml`` an engine or a clusterer is handed.

Sections hold settings that several plugins share, such as ``engine.lambda_scale``. A plugin gets
those that its own model declares and no others, so a plugin never fails over a setting that
belongs to another one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from gradian_core.config.problems import accepted_names

if TYPE_CHECKING:
    from pydantic import BaseModel

    from gradian_core.config.models import Config, Section
    from gradian_core.plugins.record import Kind
    from gradian_core.plugins.registry import Registry

__all__ = [
    "clusterer_options",
    "engine_options",
    "ignored_engine_options",
    "metric_options",
    "refuse_unknown_names",
]

_CORES_OWN = {"name", "also", "consensus", "cross_check", "options", "memory_limit_mb"}
"""Settings of section ``engine`` that core reads itself."""


def engine_options(config: Config, name: str, model: type[BaseModel] | None) -> dict[str, Any]:
    """Return the options of an engine.

    Parameters
    ----------
    config
        The whole configuration.
    name
        The engine's name: ``config.engine.name``, or the one of the cross-check.
    model
        The engine's own model (:meth:`gradian_core.plugins.registry.Registry.config_model`).

    Returns
    -------
    dict
        Fields of section ``engine``, and ``seed``, that the model declares, overridden by
        ``engine.options[name]``, which is passed on unchecked: the registry validates it.
    """
    shared = _declared(config, config.engine, {"name", "cross_check", "options"}, model)
    return {**shared, **config.engine.options.get(name, {})}


def ignored_engine_options(
    config: Config, name: str, model: type[BaseModel] | None
) -> dict[str, Any]:
    """Return the settings that were changed and that an engine is not handed, with their values.

    Parameters
    ----------
    config
        The whole configuration.
    name, model
        The engine's name and its own model.

    Returns
    -------
    dict
        Fields of section ``engine`` by their dotted names, where they differ from the default,
        and ``engine.options`` of other engines.
    """
    section = config.engine
    taken = accepted_names(model) if model is not None else ()
    ignored = {
        f"engine.{field}": getattr(section, field)
        for field, info in type(section).model_fields.items()
        if field not in _CORES_OWN
        and field not in taken
        and getattr(section, field) != info.get_default(call_default_factory=True)
    }
    others = {
        f"engine.options.{other}": dict(options)
        for other, options in section.options.items()
        if other != name and options
    }
    return {**ignored, **others}


def clusterer_options(config: Config, name: str, model: type[BaseModel] | None) -> dict[str, Any]:
    """Return the options of a clusterer; as :func:`engine_options`, from section ``clustering``."""
    shared = _declared(config, config.clustering, {"method", "options"}, model)
    return {**shared, **config.clustering.options.get(name, {})}


def metric_options(config: Config, name: str) -> dict[str, Any]:
    """Return the options of a metric: ``evaluation.options[name]`` and nothing else."""
    return dict(config.evaluation.options.get(name, {}))


def refuse_unknown_names(config: Config, registry: Registry) -> None:
    """Refuse options of clusterers and metrics that are not installed.

    Those of engines without effect are told in the report: an engine may be compared on another
    machine.

    Raises
    ------
    UsageError
        With the name that is closest.
    """
    kinds: dict[Kind, dict[str, dict[str, Any]]] = {
        "clusterer": config.clustering.options,
        "metric": config.evaluation.options,
    }
    for kind, options in kinds.items():
        for name in options:
            registry.find(kind, name)


def _declared(
    config: Config, section: Section, ours: Collection[str], model: type[BaseModel] | None
) -> dict[str, Any]:
    if model is None:
        return {}
    shared = {"seed": config.seed, **section.model_dump()}
    return {
        key: value
        for key, value in shared.items()
        if key not in ours and key in accepted_names(model)
    }
