"""Runs that Weights & Biases watched: the files of its run folder.

The history itself lies in a binary file that only wandb reads; what is kept beside it is the
config, the last value of every metric, and the console's output.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradian_core.errors import InputError
from gradian_core.runs.artifact import (
    AdapterInfo,
    RunArtifact,
    TrainerLog,
    TrainingConfig,
    Value,
)
from gradian_core.runs.evidence import settle

from ._arguments import argument_values, looks_like_arguments
from ._files import Remarks, head, integer, json_object, number, text_of
from ._peft import described_adapter
from ._places import is_lfs_pointer
from ._printed import has_printed_log, printed_log
from ._yaml import read_yaml

__all__ = ["WandbRunReader"]

_CONFIG, _SUMMARY, _OUTPUT = "config.yaml", "wandb-summary.json", "output.log"
_MOST_TEXT = 64 << 20
_RUN = re.compile(r"(?:offline-)?run-\d{8}_\d{6}-\w+")
_REQUIREMENT = re.compile(r"^([A-Za-z][\w-]{0,40})==(\d[\w.+!]{0,60})$")
_PACKAGES = frozenset({"axolotl", "peft", "torch", "transformers", "trl", "unsloth"})
_TRL_KEYS = frozenset({"completion_only_loss", "dataset_text_field", "packing", "eval_packing"})
_SPECIFICITY = 20


class WandbRunReader:
    """Reads the files of a wandb run."""

    def can_read(self, path: Path) -> bool:
        """Whether there is a wandb run folder, or a file of one."""
        if _binary(path) is not None:
            return True
        if path.is_file():
            if path.name.endswith(_OUTPUT):
                return has_printed_log(head(path)) or is_lfs_pointer(path)
            return path.name.endswith(_SUMMARY) or (path.suffix == ".yaml" and _is_config(path))
        return _folder(path, Remarks()) is not None

    def read(self, path: Path) -> RunArtifact:
        """Read config, summary and output.

        Raises
        ------
        InputError
            If all there is is damaged.
        """
        remarks = Remarks()
        folder = None if path.is_file() else _folder(path, remarks)
        config = _config(_file(path, folder, _CONFIG), remarks)
        log = _log(_file(path, folder, _OUTPUT), remarks)
        log = _summary(_file(path, folder, _SUMMARY), log, remarks)
        binary = _binary(path)
        if binary is not None and not (config or log):
            raise InputError(
                f"{binary} is wandb's binary history, which is not read.",
                hint="Give the run's folder with files/config.yaml, or the trainer's own output.",
            )
        remarks.insist(config or log, path)
        if folder is not None and any(folder.parent.glob("run-*.wandb")):
            remarks.note("The history in wandb's binary file is not read; it is on their server.")
        return RunArtifact(
            path=path,
            reader="wandb",
            training=_training(config, _requirements(folder, remarks)) if config else None,
            adapter=_adapter(config, path),
            log=log,
            notes=tuple(remarks.notes),
            refusals=remarks.refusals,
            specificity=_SPECIFICITY,
        )


def _binary(path: Path) -> Path | None:
    if path.is_file():
        return path if path.suffix == ".wandb" else None
    found = [p for place in ("", "*run-*/", "wandb/*run-*/") for p in path.glob(f"{place}*.wandb")]
    return min(found, default=None)


def _folder(path: Path, remarks: Remarks) -> Path | None:
    """Return the folder ``files`` of the last run; runs are named for when they began."""
    for own in (path, path / "files"):
        if (own / _SUMMARY).is_file() or ((own / _CONFIG).is_file() and _is_config(own / _CONFIG)):
            return own
    runs = sorted(
        (p for p in (*path.glob("wandb/*run-*"), *path.glob("*run-*")) if _RUN.fullmatch(p.name)),
        key=lambda p: p.name.removeprefix("offline-"),
    )
    if len(runs) > 1:
        remarks.note(f"Of {len(runs)} wandb runs the last one, {runs[-1].name}, was read.")
    return runs[-1] / "files" if runs else None


def _is_config(path: Path) -> bool:
    return "_wandb:" in head(path)


def _file(path: Path, folder: Path | None, name: str) -> Path | None:
    if folder is not None:
        return folder / name if (folder / name).is_file() else None
    return path if path.name.endswith(name) else None


def _config(path: Path | None, remarks: Remarks) -> dict[str, Any]:
    """Return the values of ``config.yaml``, where each stands under ``value``."""
    config = remarks.attempt(path, read_yaml) if path else None
    return {
        key: entry["value"]
        for key, entry in (config.values if config else {}).items()
        if isinstance(entry, dict) and "value" in entry
    }


def _training(config: Mapping[str, Any], versions: dict[str, Value]) -> TrainingConfig:
    tool = "trl" if len(_TRL_KEYS & config.keys()) > 1 else "transformers"
    values = argument_values(config, _CONFIG, tool) if looks_like_arguments(config) else {}
    stated = config.get("_wandb")
    version = stated.get("huggingface_version") if isinstance(stated, dict) else None
    if isinstance(version, str):
        versions = {"transformers": Value(version, f"{_CONFIG} (_wandb)", "ran")} | versions
    base = config.get("_name_or_path")
    if isinstance(base, str) and base:
        values["base_model"] = Value(base, f"{_CONFIG} (_name_or_path)", "ran")
    found = versions.get(tool)
    return TrainingConfig(
        tool=tool, version=found.value if found else None, values=values, versions=versions
    )


def _requirements(folder: Path | None, remarks: Remarks) -> dict[str, Value]:
    path = folder / "requirements.txt" if folder else None
    if path is None or not path.is_file():
        return {}
    text = remarks.attempt(path, lambda p: text_of(p, 1 << 20)) or ""
    pairs = [match.groups() for line in text.split("\n") if (match := _REQUIREMENT.match(line))]
    found = {name.lower(): version for name, version in pairs if name.lower() in _PACKAGES}
    return settle([{n: Value(v, path.name, "ran") for n, v in found.items()}])[0]


def _adapter(config: Mapping[str, Any], path: Path) -> AdapterInfo | None:
    adapters = config.get("peft_config")
    raw = adapters.get("default") if isinstance(adapters, dict) else None
    if not isinstance(raw, dict) or str(raw.get("peft_type", "")).rsplit(".")[-1] != "LORA":
        return None
    base = raw.get("base_model_name_or_path")
    body = raw | {"peft_type": "LORA"}
    return described_adapter(path, body, f"{_CONFIG} (peft_config.default)", base, "ran")


def _log(path: Path | None, remarks: Remarks) -> TrainerLog | None:
    text = remarks.attempt(path, lambda p: text_of(p, _MOST_TEXT)) if path else None
    records, total = printed_log(text or "")
    if not records or path is None:
        return None
    if not any("step" in record for record in records):
        remarks.note(f"{path.name} prints no steps: its entries are in order only.")
    return TrainerLog(records=tuple(records), max_steps=total, source=path.name)


def _summary(path: Path | None, log: TrainerLog | None, remarks: Remarks) -> TrainerLog | None:
    """Add the steps that were taken; the last values alone make a log of one entry."""
    summary = remarks.attempt(path, json_object) if path else None
    if not summary:
        return log
    steps = integer(number(summary.get("train/global_step")))
    record: dict[str, Any] = {} if steps is None else {"step": steps}
    for key, value in summary.items():
        kind, _, name = key.partition("/")
        if name and kind in ("train", "eval") and number(value) is not None:
            record[name if kind == "train" else f"eval_{name}"] = number(value)
    for key in ("train_loss", "train_runtime"):
        if number(summary.get(key)) is not None:
            record[key] = number(summary[key])
    record.pop("global_step", None)
    if log is None:
        remarks.note(f"{_SUMMARY} holds the last value of each metric only.")
        records: tuple[Mapping[str, Any], ...] = (record,)
    else:
        records = log.records
    return TrainerLog(
        records=records,
        global_step=steps,
        max_steps=log.max_steps if log else None,
        epoch=number(summary.get("train/epoch")),
        source=log.source if log else _SUMMARY,
    )
