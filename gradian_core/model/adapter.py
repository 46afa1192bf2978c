"""Reading and refusing adapter folders, before any weight is loaded."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gradian_core.errors import InputError
from gradian_core.files import refuse_lfs_pointer
from gradian_core.runs.artifact import AdapterInfo
from gradian_core.text import excerpt

__all__ = ["adapter_files", "find_adapter", "read_adapter"]

_CONFIG = "adapter_config.json"
_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
_CONFIG_LIMIT = 4 << 20


def find_adapter(given: str) -> Path:
    """Return the adapter's folder.

    Raises
    ------
    InputError
        For a missing folder, a full or merged model, or a run folder (the message names the
        adapter inside it).
    """
    folder = Path(given).expanduser()
    if not folder.exists():
        raise InputError(f"adapter: there is no folder {given}.")
    if folder.is_file():
        folder = folder.parent
    if (folder / _CONFIG).is_file():
        return folder
    inside = sorted(path.parent for path in folder.glob(f"*/{_CONFIG}"))
    if inside:
        raise InputError(
            f"adapter: {given} is not itself an adapter folder.",
            hint=f"Did you mean {inside[-1]}?",
        )
    if (folder / "config.json").is_file():
        raise InputError(
            f"adapter: {given} is a whole model (a full fine-tune or a merged adapter).",
            hint="Gradian attributes over LoRA parameters: give the adapter as before merging.",
        )
    raise InputError(f"adapter: {given} has no {_CONFIG}.", hint="Give a PEFT LoRA adapter folder.")


def read_adapter(folder: Path) -> AdapterInfo:
    """Read ``adapter_config.json`` and check that it is a LoRA that can be attributed over.

    Raises
    ------
    InputError
        For damaged JSON, another PEFT type, another task type, missing or unfetched weights.
    """
    path = folder / _CONFIG
    try:
        if path.stat().st_size > _CONFIG_LIMIT:
            raise InputError(f"{path} is larger than {_CONFIG_LIMIT >> 20} MiB.")
        raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read as JSON: {error}.", hint="Copy or save the adapter again."
        ) from error
    if not isinstance(raw, dict):
        raise InputError(f"{path} is not a JSON object.")
    if "peft_type" not in raw and "lora_parameters" in raw:
        raise InputError(
            f"{path} is an mlx-lm adapter, which PEFT cannot load.",
            hint="Convert it to a PEFT adapter first; gradian diagnose reads it as it is.",
        )
    peft_type = str(raw.get("peft_type", "unknown"))
    if peft_type != "LORA":
        raise InputError(
            f"{path}: peft_type is {peft_type}, not LORA.",
            hint="Gradian attributes over LoRA A and B matrices only.",
        )
    task = raw.get("task_type")
    if task not in (None, "CAUSAL_LM"):
        raise InputError(
            f"{path}: task_type is {task}.", hint="Only causal language models are supported."
        )
    _refuse_wrong_values(path, raw)
    adapter_files(folder)
    base = raw.get("base_model_name_or_path")
    return AdapterInfo(
        path=folder,
        peft_type=peft_type,
        base_model=str(base) if base else None,
        r=raw.get("r"),
        lora_alpha=raw.get("lora_alpha"),
        raw=raw,
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 1 << 31


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_WANTED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "r": ("a whole number of at least 1", _is_count),
    "lora_alpha": ("a number", _is_number),
    "lora_dropout": ("a number from 0 to 1", lambda v: _is_number(v) and 0 <= v <= 1),
    "target_modules": ("text or a list of names", lambda v: isinstance(v, str) or _is_names(v)),
    "modules_to_save": ("a list of names", _is_names),
    "rank_pattern": (
        "an object of whole numbers of at least 1",
        lambda v: isinstance(v, dict) and all(map(_is_count, v.values())),
    ),
    "alpha_pattern": (
        "an object of numbers",
        lambda v: isinstance(v, dict) and all(map(_is_number, v.values())),
    ),
    "bias": ("none, all or lora_only", lambda v: v in ("none", "all", "lora_only")),
    "use_rslora": ("true or false", lambda v: isinstance(v, bool)),
    "use_dora": ("true or false", lambda v: isinstance(v, bool)),
    "fan_in_fan_out": ("true or false", lambda v: isinstance(v, bool)),
    "base_model_name_or_path": ("text", lambda v: isinstance(v, str)),
}


def _refuse_wrong_values(path: Path, raw: Mapping[str, Any]) -> None:
    for key, (wanted, fits) in _WANTED.items():
        value = raw.get(key)
        # null is what PEFT writes for a setting that was not made; there is no rank without one
        if (value is None and key != "r") or fits(value):
            continue
        if key == "r" and key not in raw:
            continue
        raise InputError(
            f"{path}: {key}: wants {wanted}, not {excerpt(json.dumps(value), 60)}.",
            hint="Correct it to what the training used, or save the adapter again.",
        )


def adapter_files(folder: Path) -> tuple[Path, ...]:
    """Return the config and weight files of an adapter, whose content is its identity."""
    weights = next((folder / name for name in _WEIGHTS if (folder / name).is_file()), None)
    if weights is None:
        raise InputError(f"adapter: {folder} has no {_WEIGHTS[0]}.", hint="Save the adapter again.")
    refuse_lfs_pointer(weights)
    return (folder / _CONFIG, weights)
