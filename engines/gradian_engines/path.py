"""path: gradients along the way from the base model to the adapter."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import EngineSpec


@hookimpl
def gradian_engines() -> Iterator[EngineSpec]:
    """Give the engine."""
    yield EngineSpec(
        name="path",
        summary="preconditioned cosine of gradients, averaged over scaled-down adapters",
        factory="gradian_engines._path:Path",
        config="gradian_engines._path:PathSettings",
    )
