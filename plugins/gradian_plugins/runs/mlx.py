"""Runs of mlx-lm: its YAML config, the ``adapter_config.json`` of its own, and what it prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradian_core.runs.artifact import (
    AdapterInfo,
    Basis,
    RunArtifact,
    TrainerLog,
    TrainingConfig,
    UnknownKey,
    Value,
)
from gradian_core.runs.evidence import settle

from ._fields import fields
from ._files import Remarks, files_of, head, integer, json_object, number, text_of
from ._mlx_text import is_mlx_text, mlx_log
from ._optimisers import optimiser
from ._peft import CONFIG, described_adapter
from ._places import Places
from ._tool_config import asked, config_of, defaults, flag, has_config
from ._yaml import YamlConfig

__all__ = ["MlxRunReader"]

_MOST_CONFIG = 4 << 20
_MOST_TEXT = 64 << 20
_TEXTS = frozenset({".txt", ".log", ".out"})
_OWN = frozenset(
    {
        "fine_tune_type",
        "iters",
        "lora_parameters",
        "mask_prompt",
        "num_layers",
        "steps_per_eval",
        "steps_per_report",
        "val_batches",
    }
)
"""Keys that, two together, no other tool has."""

_NAMES: Mapping[str, str] = {
    "batch_size": "per_device_train_batch_size",
    "data": "datasets",
    "grad_accumulation_steps": "gradient_accumulation_steps",
    "grad_checkpoint": "gradient_checkpointing",
    "lora_layers": "num_layers",
    "learning_rate": "learning_rate",
    "max_seq_length": "max_seq_length",
    "model": "base_model",
    "num_layers": "num_layers",
    "save_every": "save_steps",
    "seed": "seed",
    "steps_per_eval": "eval_steps",
    "steps_per_report": "logging_steps",
    "lr_schedule.warmup": "warmup_steps",
}
_DEFAULTS: Mapping[str, Any] = {
    "gradient_accumulation_steps": 1,
    "learning_rate": 1e-5,
    "logging_nan_inf_filter": (False, "losses are printed as they are"),
    "max_grad_norm": (0.0, "mlx-lm cannot clip gradients"),
    "max_seq_length": 2048,
    "num_layers": 16,
    "optim": "adam",
    "overlong_rows": ("cut_right", "rows are cut with a warning"),
    "packing": (False, "mlx-lm cannot pack"),
    "per_device_train_batch_size": 4,
    "seed": 0,
    "stage": "sft",
    "train_on_prompt": (True, "mask_prompt false"),
    "warmup_steps": (0, "no lr_schedule"),
    "weight_decay": (0.0, "that of the optimiser"),
}
_ITERS = 1000


class MlxRunReader:
    """Reads mlx-lm's config, adapter config and printed log."""

    def can_read(self, path: Path) -> bool:
        """Whether there is a config of mlx-lm's, or what it printed."""
        return _json_config(path) is not None or has_config(path, _is_mlx) or bool(_texts(path))

    def read(self, path: Path) -> RunArtifact:
        """Read config and log; the saved config holds every argument, a YAML one only some.

        Raises
        ------
        InputError
            If all there is is damaged.
        """
        remarks = Remarks()
        config = _config(path, remarks)
        log = _log(path, remarks)
        remarks.insist(config or log, path)
        if config is not None and _only_tests(config):
            text = f"{config.name} asks mlx-lm for a test only (train is false): no training run."
            remarks.refuse("not_a_training_run", text)
            config = log = None
        values = _values(config) if config else {}
        if config is not None and values["finetuning_type"].value == "full":
            text = f"{values['finetuning_type'].source}: the whole model is trained."
            remarks.refuse("not_a_lora_run", text)
        steps = values.get("gradient_accumulation_steps")
        if log is not None and steps is not None and isinstance(steps.value, int) and config:
            log = _optimiser_steps(log, max(steps.value, 1), values)
        return RunArtifact(
            path=path,
            reader="mlx",
            training=TrainingConfig(
                tool="mlx-lm", values=values, unknown_keys=_unknown(config) if config else ()
            )
            if config or log
            else None,
            adapter=_adapter(config, path, values) if config else None,
            log=log,
            notes=tuple(remarks.notes),
            refusals=remarks.refusals,
        )


def _is_mlx(values: Mapping[str, Any]) -> bool:
    return len(_OWN & values.keys()) >= 2


def _json_config(path: Path) -> Path | None:
    """Return mlx-lm's ``adapter_config.json``, which is none of PEFT's in spite of its name."""
    candidates = [path] if path.is_file() else [path / CONFIG, path / "adapters" / CONFIG]
    for candidate in candidates:
        if candidate.suffix.lower() == ".json" and candidate.is_file():
            text = head(candidate)
            if '"peft_type"' not in text and sum(f'"{key}"' in text for key in _OWN) >= 2:
                return candidate
    return None


def _config(path: Path, remarks: Remarks) -> YamlConfig | None:
    saved = _json_config(path)
    if saved is None:
        return config_of(path, _is_mlx, remarks)
    raw = remarks.attempt(saved, lambda p: json_object(p, _MOST_CONFIG))
    return None if raw is None else YamlConfig(saved.name, raw, {})


def _only_tests(config: YamlConfig) -> bool:
    train, test = config.values.get("train"), config.values.get("test")
    return flag(train) is False and flag(test) is True


def _values(config: YamlConfig) -> dict[str, Value]:
    basis: Basis = "ran" if config.name.endswith(".json") else "asked"
    values, _ = settle(
        [_derived(config, basis), asked(config, _NAMES, basis), defaults("mlx-lm", _DEFAULTS)]
    )
    # an iteration is a forward pass; so many of them make one step
    iters = integer(number(config.values.get("iters")))
    accumulation = values["gradient_accumulation_steps"].value
    each = accumulation if isinstance(accumulation, int) and accumulation > 0 else 1
    if iters is None:
        origin = f"default of mlx-lm (iters {_ITERS})"
        values["max_steps"] = Value(_ITERS // each, origin, "default")
    else:
        values["max_steps"] = Value(iters // each, f"{config.where('iters')} (iters)", basis)
    return values


def _derived(config: YamlConfig, basis: Basis) -> dict[str, Value]:
    """Return settings that take more than one key, or whose meaning is mlx-lm's own."""
    values = config.values
    derived: dict[str, Value] = {}
    if isinstance(values.get("optimizer"), str):
        name = optimiser(values["optimizer"])
        derived["optim"] = Value(name, config.where("optimizer"))
        options = values.get("optimizer_config")
        mine = options.get(values["optimizer"]) if isinstance(options, dict) else None
        if isinstance(mine, dict) and number(mine.get("weight_decay")) is not None:
            decay = number(mine["weight_decay"])
            derived["weight_decay"] = Value(decay, config.where("optimizer_config"))
    masked = flag(values.get("mask_prompt"))
    if isinstance(masked, bool):
        where = f"{config.where('mask_prompt')} (mask_prompt)"
        derived["train_on_prompt"] = Value(not masked, where)
    schedule = values.get("lr_schedule")
    if isinstance(schedule, dict):
        where = config.where("lr_schedule")
        name = str(schedule.get("name") or "constant")
        derived["lr_scheduler_type"] = Value(name.split("_")[0], where)
        if (peak := _peak(name, schedule.get("arguments"))) is not None:
            # the schedule's own arguments replace learning_rate
            derived["learning_rate"] = Value(peak, f"{where} (arguments)", basis)
    else:
        derived["lr_scheduler_type"] = Value(
            "constant", "default of mlx-lm (no lr_schedule)", "default"
        )
    kind = str(values.get("fine_tune_type") or "lora")
    derived["finetuning_type"] = Value(kind, config.where("fine_tune_type"))
    batches = integer(number(values.get("val_batches")))
    origin = f"{config.where('val_batches')} (mlx-lm evaluates on valid.jsonl)"
    derived["has_eval_set"] = Value(batches != 0, origin, "inferred")
    return derived


def _peak(schedule: str, arguments: Any) -> float | None:
    """Return the highest rate of a schedule: its first argument, or the second if it rises."""
    if not isinstance(arguments, list):
        return None
    rates = [number(rate) for rate in arguments[: 2 if schedule.startswith("linear") else 1]]
    return max((rate for rate in rates if rate is not None), default=None)


def _adapter(config: YamlConfig, path: Path, values: Mapping[str, Value]) -> AdapterInfo | None:
    kind = values["finetuning_type"].value
    if kind == "full":
        return None
    given = config.values.get("lora_parameters")
    lora = given if isinstance(given, dict) else {}
    rank = integer(number(lora.get("rank"))) or 8
    scale = number(lora.get("scale"))
    scale = 20.0 if scale is None else scale
    keys = lora.get("keys")
    raw = {
        "r": rank,
        # mlx-lm's scale is the multiplier itself, which PEFT computes as alpha / r
        "lora_alpha": scale * rank,
        "lora_dropout": number(lora.get("dropout")) or 0.0,
        "target_modules": [str(key) for key in keys] if isinstance(keys, list) else "all-linear",
        "use_rslora": False,
        "use_dora": kind == "dora",
        "scale": scale,
        "num_layers": values["num_layers"].value,
    }
    where = config.where("lora_parameters")
    saved = _json_config(path)
    folder = path if saved is None else saved.parent
    basis: Basis = "asked" if saved is None else "ran"
    return described_adapter(folder, raw, where, config.values.get("model"), basis)


def _unknown(config: YamlConfig) -> tuple[UnknownKey, ...]:
    """Return the keys that mlx-lm takes over without a look; a saved config may have more."""
    if config.name.endswith(".json"):
        return ()
    known = frozenset(fields()["mlx"])
    return tuple(
        UnknownKey(name=key, value=value, source=config.where(key))
        for key, value in config.values.items()
        if value is not None and key not in known
    )


# --- the log


def _texts(path: Path) -> list[Path]:
    if path.is_file():
        files = [path] if path.suffix.lower() in _TEXTS else []
    else:
        files = [f for suffix in sorted(_TEXTS) for f in files_of(path, f"*{suffix}")]
    return [file for file in files if is_mlx_text(head(file))]


def _log(path: Path, remarks: Remarks) -> TrainerLog | None:
    texts = _texts(path)
    if not texts and not path.is_file():
        texts = [t for folder in Places(path).folders[1:] for t in _texts(folder)]
    if not texts:
        return None
    if len(texts) > 1:
        remarks.note(f"Of {len(texts)} printed logs {texts[-1].name} was read.")
    text = remarks.attempt(texts[-1], lambda p: text_of(p, _MOST_TEXT))
    records, runs = mlx_log(text or "")
    if runs > 1:
        remarks.note(f"{texts[-1].name} holds {runs} runs one after the other; the last was read.")
    if not records:
        return None
    return TrainerLog(
        records=tuple(records), global_step=records[-1]["step"], source=texts[-1].name
    )


def _optimiser_steps(log: TrainerLog, each: int, values: Mapping[str, Value]) -> TrainerLog:
    planned = values["max_steps"].value
    records = tuple({**record, "step": record["step"] // each} for record in log.records)
    return replace(
        log, records=records, global_step=(log.global_step or 0) // each, max_steps=planned
    )
