"""PEFT's ``adapter_config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradian_core.runs.artifact import AdapterInfo, Basis, Value

from ._fields import fitting_version
from ._files import Remarks, integer, json_object, number

__all__ = [
    "CONFIG",
    "adapter_versions",
    "described_adapter",
    "has_weights",
    "is_peft",
    "read_peft",
]

CONFIG = "adapter_config.json"
_MOST_BYTES = 4 << 20
_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")


def is_peft(raw: Mapping[str, Any]) -> bool:
    """Return whether this is PEFT's file and not mlx-lm's of the same name.

    PEFT before 0.3 and torchtune write no more than a few of its keys.
    """
    return "peft_type" in raw


def has_weights(folder: Path) -> bool:
    """Return whether a folder holds an adapter's weights."""
    return any((folder / name).is_file() for name in _WEIGHTS)


def read_peft(path: Path, remarks: Remarks) -> AdapterInfo | None:
    """Read a config file; None if it is not PEFT's.

    Raises
    ------
    InputError
        If it is damaged.
    """
    raw = json_object(path, _MOST_BYTES)
    if not is_peft(raw):
        return None
    for name in _WEIGHTS:
        if (path.parent / name).is_file():
            remarks.attempt(path.parent / name, lambda _: None)
    peft_type = str(raw["peft_type"])
    if peft_type.upper() != "LORA":
        remarks.refuse(
            "not_a_lora_run", f"{path.name}: the adapter is of type {peft_type}, not LoRA."
        )
    base = raw.get("base_model_name_or_path")
    return AdapterInfo(
        path=path.parent,
        peft_type=peft_type,
        base_model=base if isinstance(base, str) and base else None,
        r=integer(raw.get("r")),
        lora_alpha=number(raw.get("lora_alpha")),
        raw=raw,
        source=path.name,
    )


def adapter_versions(adapter: AdapterInfo) -> dict[str, Value]:
    """Return the version of PEFT that wrote a config: stated since 0.18, else by its keys."""
    stated = adapter.raw.get("peft_version")
    name = adapter.source or CONFIG
    if isinstance(stated, str):
        return {"peft": Value(stated.split("@")[0], f"{name} (peft_version)", "ran")}
    return fitting_version("peft", adapter.raw, name) if adapter.peft_type == "LORA" else {}


def described_adapter(
    path: Path, raw: Mapping[str, Any], source: str, base: Any, basis: Basis = "asked"
) -> AdapterInfo:
    """Return the LoRA adapter that a tool's own config describes.

    Parameters
    ----------
    path, source
        The config file, and where the adapter stands in it.
    raw
        Its configuration under PEFT's names; ``all-linear`` stands for all linear layers.
    base
        The base model.
    basis
        ``asked`` unless the file describes an adapter that exists.
    """
    body = {"peft_type": "LORA", "base_model_name_or_path": base} | dict(raw)
    return AdapterInfo(
        path=path,
        peft_type=str(body["peft_type"]),
        base_model=base if isinstance(base, str) and base else None,
        r=integer(number(body.get("r"))),
        lora_alpha=number(body.get("lora_alpha")),
        raw=body,
        source=source,
        basis=basis,
    )
