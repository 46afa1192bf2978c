"""DataInf: curvature-corrected influence in closed form."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import EngineSpec


@hookimpl
def gradian_engines() -> Iterator[EngineSpec]:
    """Give the engine."""
    yield EngineSpec(
        name="datainf",
        summary="closed-form inverse curvature for LoRA, two passes over the index (default)",
        factory="gradian_engines._datainf:DataInf",
        config="gradian_engines._datainf:DataInfSettings",
        oracle="gradian_engines._oracles:datainf",
    )
