"""Built-in run readers, one file each."""

from __future__ import annotations

from collections.abc import Iterable

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import RunReaderSpec


@hookimpl
def gradian_run_readers() -> Iterable[RunReaderSpec]:
    """Declare the built-in run readers."""
    yield RunReaderSpec(
        name="hf",
        summary="transformers Trainer, trl, unsloth: trainer_state.json and adapter_config.json",
        factory="gradian_plugins.runs.hf:HFRunReader",
    )
