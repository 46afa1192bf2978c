"""graddot: the plain dot product of gradients."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import EngineSpec


@hookimpl
def gradian_engines() -> Iterator[EngineSpec]:
    """Give the engine."""
    yield EngineSpec(
        name="graddot",
        summary="dot product of gradients, no curvature; cosine with l2 and normalize_query",
        factory="gradian_engines._graddot:GradDot",
        config="gradian_engines._graddot:GradDotSettings",
        oracle="gradian_engines._oracles:graddot",
    )
