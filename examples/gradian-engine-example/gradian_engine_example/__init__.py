"""Declares the engine bm25. Nothing heavy is imported here: this runs for every listing."""

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import EngineSpec


@hookimpl
def gradian_engines() -> Iterator[EngineSpec]:
    """Give the engine."""
    yield EngineSpec(
        name="bm25",
        summary="word overlap, no gradients: the baseline that gradients must beat",
        factory="gradian_engine_example.bm25:Bm25",
        config="gradian_engine_example.bm25:Bm25Settings",
        needs="text",
        since="1.0.0",
    )
