"""Built-in trainers."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import TrainerSpec

__all__ = ["gradian_trainers"]

_HERE = "gradian_plugins.trainers"


@hookimpl
def gradian_trainers() -> Iterator[TrainerSpec]:
    """Yield the ways to fine-tune an adapter."""
    yield TrainerSpec(
        name="hf",
        summary="transformers.Trainer, on the very tokens and loss mask that attribution uses",
        factory=f"{_HERE}.hf:HfTrainer",
        requires=("torch", "peft", "accelerate"),
        extra="train",
    )
