"""TracIn: learning rate times dot product, summed over checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import EngineSpec


@hookimpl
def gradian_engines() -> Iterator[EngineSpec]:
    """Give the engine."""
    yield EngineSpec(
        name="tracin",
        summary="dot product of gradients weighted by the learning rate at each checkpoint",
        factory="gradian_engines._tracin:TracIn",
        config="gradian_engines._tracin:TracInSettings",
    )
