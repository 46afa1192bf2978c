"""The plugins that a run uses, made before any work starts: a wrong name costs no time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradian_core.flows.session import Session
from gradian_core.plugins.options import (
    clusterer_options,
    engine_options,
    ignored_engine_options,
    metric_options,
    refuse_unknown_names,
)
from gradian_core.protocols import BlockEngine, Clusterer, LikelihoodMetric, TaskEngine, TextMetric
from gradian_core.specs import MetricSpec

__all__ = ["ALL", "Tools", "make_engine", "resolve_tools"]

ALL = "all"
"""In ``engine.also``: every installed engine whose packages are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Engines, metric and clusterer, with the settings that they got.

    Parameters
    ----------
    engine, engine_name, engine_settings
        The engine whose scores are reported.
    check, check_name, check_settings
        The engine of the cross-check; None without one.
    metric, metric_spec
        The metric.
    clusterer
        The clusterer.
    owners
        Distribution and version of each, by kind, for the provenance.
    ignored
        Changed settings of section ``engine`` without effect on the reported scores, and a
        sentence on who does take them.
    """

    engine: BlockEngine | TaskEngine
    engine_name: str
    engine_settings: dict[str, Any]
    check: BlockEngine | TaskEngine | None
    check_name: str | None
    check_settings: dict[str, Any]
    metric: TextMetric | LikelihoodMetric
    metric_spec: MetricSpec
    clusterer: Clusterer
    owners: dict[str, str]
    ignored: tuple[dict[str, Any], str]


def resolve_tools(session: Session) -> Tools:
    """Make what the config names.

    Raises
    ------
    UsageError
        For a name that is not installed, or settings that a plugin does not take.
    MissingExtraError
        If a plugin's packages are not installed.
    PluginError
        If a plugin fails.
    """
    config, registry = session.config, session.registry
    refuse_unknown_names(config, registry)
    engine, settings = make_engine(session, config.engine.name)
    check_name = config.engine.cross_check
    check, check_settings = (None, {}) if check_name is None else make_engine(session, check_name)
    for name in config.engine.also:
        if name != ALL:
            make_engine(session, name)
    metric = registry.find("metric", config.evaluation.metric)
    clusterer = config.clustering.method
    owners = {
        "engine": registry.find("engine", config.engine.name).owner,
        "metric": metric.owner,
        "clusterer": registry.find("clusterer", clusterer).owner,
    }
    if check_name is not None:
        owners["cross_check"] = registry.find("engine", check_name).owner
    return Tools(
        engine=engine,
        engine_name=config.engine.name,
        engine_settings=settings,
        check=check,
        check_name=check_name,
        check_settings=check_settings,
        metric=registry.create(
            "metric",
            config.evaluation.metric,
            metric_options(config, config.evaluation.metric),
        ),
        metric_spec=metric.spec,
        clusterer=registry.create(
            "clusterer",
            clusterer,
            clusterer_options(config, clusterer, registry.config_model("clusterer", clusterer)),
        ),
        owners=owners,
        ignored=_ignored(session),
    )


def _ignored(session: Session) -> tuple[dict[str, Any], str]:
    config, registry = session.config, session.registry
    name, check = config.engine.name, config.engine.cross_check
    ignored = ignored_engine_options(config, name, registry.config_model("engine", name))
    # given by name for an engine that is run too, so meant for it
    compared = registry.engines if ALL in config.engine.also else config.engine.also
    for other in (check, *compared):
        ignored.pop(f"engine.options.{other}", None)
    if check is None or check == name or not ignored:
        return ignored, ""
    left = ignored_engine_options(config, check, registry.config_model("engine", check))
    taken = [setting for setting in ignored if setting not in left]
    return ignored, f"{check}, the cross-check, takes {', '.join(taken)}." if taken else ""


def make_engine(session: Session, name: str) -> tuple[BlockEngine | TaskEngine, dict[str, Any]]:
    """Make an engine with its settings from the config, and return both."""
    registry = session.registry
    model = registry.config_model("engine", name)
    options = engine_options(session.config, name, model)
    engine = registry.create("engine", name, options)
    # a default that changes with a version must show in the provenance
    settings = options if model is None else model.model_validate(options).model_dump(mode="json")
    return engine, settings
