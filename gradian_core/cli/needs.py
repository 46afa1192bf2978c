"""What a command cannot do without, checked before any heavy import."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gradian_core.errors import MissingExtraError, UsageError
from gradian_core.versions import importable

if TYPE_CHECKING:
    from gradian_core.config.models import Config

__all__ = ["need_attribution", "need_folder", "need_inputs"]

_TENSORS = ("torch", "peft", "safetensors")


def need_inputs(command: str, config: Config) -> None:
    """Refuse to start without an adapter, a base model and training data.

    Raises
    ------
    UsageError
        Naming all that are missing.
    """
    wanted = {
        "--adapter": (config.adapter_path, "the LoRA adapter to differentiate"),
        "--base-model": (config.base_model, "the model that was fine-tuned"),
        "--dataset": (config.dataset, "the training data"),
    }
    missing = [f"{flag} ({what})" for flag, (value, what) in wanted.items() if not value]
    if missing:
        raise UsageError(
            f"gradian {command} needs {', '.join(missing)}.",
            hint="Give it as an option, or in the file that --config names.",
        )


def need_attribution(command: str) -> None:
    """Refuse to start without the packages of extra ``attribution``.

    Raises
    ------
    MissingExtraError
        Naming the packages and the extra.
    """
    absent = tuple(name for name in _TENSORS if not importable(name))
    if absent:
        raise MissingExtraError(f"gradian {command}", absent, "attribution")


def need_folder(out: Path | None) -> None:
    """Make the folder of the results now rather than find out after hours that it cannot be.

    Raises
    ------
    UsageError
        If it cannot be made or is a file.
    """
    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--out: {out} cannot be a folder: {error.strerror or error}.",
            hint="Give another folder.",
        ) from error
    if not os.access(out, os.W_OK):
        raise UsageError(f"--out: {out} cannot be written to.", hint="Give another folder.")
