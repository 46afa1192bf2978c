"""Declares the engine bm25-contrast; nothing heavy is imported, as this runs for every listing."""

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import EngineSpec


@hookimpl
def gradian_engines() -> Iterator[EngineSpec]:
    """Give the engine."""
    yield EngineSpec(
        name="bm25-contrast",
        summary="word overlap with the right answer, less that with the wrong one; no gradients",
        factory="gradian_engine_example.bm25:Bm25",
        config="gradian_engine_example.bm25:Bm25Settings",
        needs="text",
        since="1.0.0",
    )
