"""The hooks of plugin API ``gradian.v1``.

A plugin is a light module, named by an entry point of the group :data:`GROUP`, with
implementations of some of the hooks below marked by :data:`hookimpl`. Each hook takes no
argument and returns (or yields) specs::

    from gradian_core.hookspecs import hookimpl
    from gradian_core.specs import EngineSpec

    @hookimpl
    def gradian_engines():
        yield EngineSpec(
            name="random",
            summary="random scores: the floor that any engine must beat",
            factory="my_package.random_engine:RandomEngine",
        )
"""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from gradian_core.specs import (
    CheckSpec,
    ClustererSpec,
    EngineSpec,
    MetricSpec,
    RunReaderSpec,
    SinkSpec,
    TrainerSpec,
)

__all__ = ["GROUP", "HOOKS", "PROJECT", "hookimpl"]

PROJECT = "gradian"
GROUP = "gradian.v1"
"""Entry-point group; the API version is part of its name."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def gradian_checks() -> Iterable[CheckSpec]:
    """Audit checks."""
    return ()


@hookspec
def gradian_engines() -> Iterable[EngineSpec]:
    """Attribution engines."""
    return ()


@hookspec
def gradian_clusterers() -> Iterable[ClustererSpec]:
    """Clusterers of training examples."""
    return ()


@hookspec
def gradian_metrics() -> Iterable[MetricSpec]:
    """Capability metrics."""
    return ()


@hookspec
def gradian_sinks() -> Iterable[SinkSpec]:
    """Report sinks."""
    return ()


@hookspec
def gradian_run_readers() -> Iterable[RunReaderSpec]:
    """Readers of training run folders."""
    return ()


@hookspec
def gradian_trainers() -> Iterable[TrainerSpec]:
    """Trainers that ``gradian train`` and the counterfactual use."""
    return ()


HOOKS: dict[str, type] = {
    "gradian_checks": CheckSpec,
    "gradian_engines": EngineSpec,
    "gradian_clusterers": ClustererSpec,
    "gradian_metrics": MetricSpec,
    "gradian_sinks": SinkSpec,
    "gradian_run_readers": RunReaderSpec,
    "gradian_trainers": TrainerSpec,
}
"""Every hook and the type of spec it yields."""
