"""Runs of transformers' Trainer and everything built on it (trl, unsloth)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from gradian_core.errors import InputError
from gradian_core.files import refuse_lfs_pointer
from gradian_core.runs.artifact import AdapterInfo, RunArtifact, TrainerLog, TrainingConfig, Value

_STATE = "trainer_state.json"
_ADAPTER = "adapter_config.json"
_LIMIT = 256 << 20
_SETTINGS = ("max_steps", "num_train_epochs", "logging_steps", "save_steps", "train_batch_size")


class HFRunReader:
    """Reads the log from the run folder, or from its numerically last checkpoint."""

    def can_read(self, path: Path) -> bool:
        """Whether there is a ``trainer_state.json`` in or under the folder."""
        return _find_state(path) is not None

    def read(self, path: Path) -> RunArtifact:
        """Read log, settings and adapter configuration.

        Raises
        ------
        InputError
            If a file is damaged or a Git-LFS pointer.
        """
        found = _find_state(path)
        if found is None:
            raise InputError(f"{path} holds no {_STATE}.")
        state = _json_object(found)
        records = state.get("log_history", [])
        if not isinstance(records, list) or not all(isinstance(entry, dict) for entry in records):
            raise InputError(f"{found}: log_history is not a list of objects.")
        values = {
            key: Value(state[key], str(found.name))
            for key in _SETTINGS
            if state.get(key) is not None
        }
        return RunArtifact(
            path=path,
            reader="hf",
            training=TrainingConfig(tool="transformers", values=values),
            adapter=_adapter(path, found),
            log=TrainerLog(
                records=tuple(records),
                global_step=_integer(state.get("global_step")),
                max_steps=_integer(state.get("max_steps")),
            ),
        )


def _find_state(path: Path) -> Path | None:
    if path.is_file():
        return path if path.name == _STATE else None
    if (path / _STATE).is_file():
        return path / _STATE
    checkpoints = [
        (int(match[1]), folder)
        for folder in path.glob("checkpoint-*")
        # by number: checkpoint-1000 comes after checkpoint-200
        if (match := re.fullmatch(r"checkpoint-(\d+)", folder.name)) and (folder / _STATE).is_file()
    ]
    return max(checkpoints)[1] / _STATE if checkpoints else None


def _adapter(path: Path, state: Path) -> AdapterInfo | None:
    root = path if path.is_dir() else path.parent
    for folder in (root, root / "adapter", state.parent):
        config = folder / _ADAPTER
        if config.is_file():
            raw = _json_object(config)
            return AdapterInfo(
                path=folder,
                peft_type=str(raw.get("peft_type", "unknown")),
                base_model=raw.get("base_model_name_or_path"),
                r=_integer(raw.get("r")),
                lora_alpha=raw.get("lora_alpha"),
                raw=raw,
            )
    return None


def _json_object(path: Path) -> dict[str, Any]:
    refuse_lfs_pointer(path)
    if path.stat().st_size > _LIMIT:
        raise InputError(f"{path} is larger than {_LIMIT >> 20} MiB.")
    try:
        # transformers writes bare NaN and Infinity, which the standard library reads
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise InputError(f"{path} is not a JSON object.")
    return value


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
