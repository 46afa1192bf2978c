"""Runs of LLaMA-Factory: its YAML config, ``training_args.yaml`` and ``trainer_log.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradian_core.runs.artifact import (
    AdapterInfo,
    RunArtifact,
    TrainerLog,
    TrainingConfig,
    Value,
)
from gradian_core.runs.evidence import settle

from ._files import Remarks, head, integer, json_lines, number
from ._llamafactory_keys import DEFAULTS, NAMES
from ._peft import described_adapter
from ._places import Places, is_lfs_pointer
from ._tool_config import asked, config_of, defaults, flag, has_config
from ._yaml import YamlConfig

__all__ = ["LlamaFactoryRunReader"]

_LOG = "trainer_log.jsonl"
_PREFERRED = ("training_args.yaml",)
_OWN = frozenset(
    {
        "cutoff_len",
        "dataset_dir",
        "finetuning_type",
        "lora_rank",
        "lora_target",
        "quantization_bit",
        "stage",
        "template",
    }
)
"""Keys that, two together, no other tool has."""
_KEYS = {
    "current_steps": "step",
    "lr": "learning_rate",
    "learning_rate": "learning_rate",
    "loss": "loss",
    "eval_loss": "eval_loss",
    "epoch": "epoch",
    "grad_norm": "grad_norm",
    "total_tokens": "num_tokens",
}


class LlamaFactoryRunReader:
    """Reads LLaMA-Factory's config and log."""

    def can_read(self, path: Path) -> bool:
        """Whether there is a config or a log of LLaMA-Factory's."""
        if path.is_file() and path.suffix.lower() == ".jsonl":
            return _is_log(path)
        if Places(path).find(_LOG) is not None:
            return True
        return has_config(path, _is_llamafactory)

    def read(self, path: Path) -> RunArtifact:
        """Read config and log.

        A config of a prediction gives neither settings nor log: it is no training run.

        Raises
        ------
        InputError
            If all there is is damaged.
        """
        remarks = Remarks()
        log_path = path if path.is_file() and path.suffix == ".jsonl" else Places(path).find(_LOG)
        config = config_of(path, _is_llamafactory, remarks, _PREFERRED)
        if config is not None and _only_predicts(config):
            remarks.refuse(
                "not_a_training_run",
                f"{config.name} is a prediction or evaluation of LLaMA-Factory (no do_train), "
                "not a training run.",
            )
            return _refused(path, remarks)
        log = remarks.attempt(log_path, lambda p: _read_log(p, remarks)) if log_path else None
        remarks.insist(config or log, path)
        if config is None and log is None:
            return _refused(path, remarks)
        return RunArtifact(
            path=path,
            reader="llamafactory",
            training=TrainingConfig(
                tool="llamafactory", values=_values(config, remarks) if config else {}
            ),
            adapter=_adapter(config, path) if config else None,
            log=log,
            notes=tuple(remarks.notes),
            refusals=remarks.refusals,
        )


def _refused(path: Path, remarks: Remarks) -> RunArtifact:
    return RunArtifact(
        path=path,
        reader="llamafactory",
        notes=tuple(remarks.notes),
        refusals=remarks.refusals,
    )


def _is_llamafactory(values: Mapping[str, Any]) -> bool:
    return len(_OWN & values.keys()) >= 2 and "_component_" not in str(values.get("model"))


def _only_predicts(config: YamlConfig) -> bool:
    values = config.values
    if flag(values.get("do_train")) is True:
        return False
    others = ("do_predict", "do_eval", "predict_with_generate", "export_dir")
    return any(values.get(key) not in (None, False) for key in others)


def _values(config: YamlConfig, remarks: Remarks) -> dict[str, Value]:
    values, _ = settle(
        [asked(config, NAMES), _derived(config), defaults("LLaMA-Factory", DEFAULTS)]
    )
    kind, stage = values["finetuning_type"], values["stage"]
    if kind.value not in ("lora", "dora"):
        text = f"{kind.source}: finetuning_type {kind.value} trains no LoRA adapter."
        remarks.refuse("not_a_lora_run", text)
    if stage.value not in ("sft", "pt"):
        text = f"{stage.source}: stage {stage.value} is not supervised fine-tuning."
        remarks.refuse("not_sft", text)
    if stage.value == "pt" and values["packing"].basis == "default":
        values["packing"] = Value(True, "default of LLaMA-Factory (stage pt)", "default")
        values["train_on_prompt"] = Value(True, f"{stage.source} (stage pt)", "asked")
    if values["packing"].value:
        values["overlong_rows"] = Value(
            "drop", "default of LLaMA-Factory (packing drops longer rows)", "default"
        )
    return values


def _derived(config: YamlConfig) -> dict[str, Value]:
    """Return settings that take more than one key, or whose meaning is LLaMA-Factory's own."""
    values = config.values
    derived: dict[str, Value] = {}
    bits = integer(number(values.get("quantization_bit")))
    if bits is not None:
        where = config.where("quantization_bit")
        derived["load_in_4bit"] = Value(bits == 4, where)
        derived["load_in_8bit"] = Value(bits == 8, where)
    held_out = number(values.get("val_size")) or 0.0
    key = "eval_dataset" if values.get("eval_dataset") else "val_size"
    if values.get(key) is not None:
        has = key == "eval_dataset" or held_out > 0
        derived["has_eval_set"] = Value(has, config.where(key))
    else:
        origin = "default of LLaMA-Factory (val_size 0, no eval_dataset)"
        derived["has_eval_set"] = Value(False, origin, "default")
    if flag(values.get("neat_packing")) is True:
        where = config.where("neat_packing")
        derived["packing"] = Value(True, where)
        derived["packing_isolated"] = Value(True, where)
    elif flag(values.get("packing")) is True:
        origin = "default of LLaMA-Factory (neat_packing false)"
        derived["packing_isolated"] = Value(False, origin, "default")
    if flag(values.get("pure_bf16")) is True:
        derived["bf16"] = Value(True, config.where("pure_bf16"))
    return derived


def _adapter(config: YamlConfig, path: Path) -> AdapterInfo | None:
    values = config.values
    if (values.get("finetuning_type") or "lora") != "lora":
        return None
    rank = integer(number(values.get("lora_rank"))) or 8
    targets = _names(values.get("lora_target") or "all")
    extra = values.get("additional_target")
    raw = {
        "r": rank,
        "lora_alpha": number(values.get("lora_alpha")) or 2 * rank,
        "lora_dropout": number(values.get("lora_dropout")) or 0.0,
        "target_modules": "all-linear" if targets == ["all"] else targets,
        "modules_to_save": _names(extra) if extra else None,
        "use_rslora": flag(values.get("use_rslora")) is True,
        "use_dora": flag(values.get("use_dora")) is True,
    }
    key = next((k for k in ("lora_rank", "lora_target", "finetuning_type") if k in values), "")
    return described_adapter(path, raw, config.where(key), values.get("model_name_or_path"))


def _names(value: Any) -> list[str]:
    """Split names at commas, as LLaMA-Factory does."""
    parts = value if isinstance(value, list) else str(value).split(",")
    return [name for part in parts if (name := str(part).strip())]


# --- the log


def _is_log(path: Path) -> bool:
    text = head(path)
    return is_lfs_pointer(path) or ('"current_steps"' in text and '"total_steps"' in text)


def _read_log(path: Path, remarks: Remarks) -> TrainerLog | None:
    """Read the log's last run: a run that is started again appends to the file."""
    records: list[dict[str, Any]] = []
    total: int | None = None
    finished: bool | None = None
    runs = 1
    for line in json_lines(path, remarks):
        step = integer(line.get("current_steps"))
        if step is not None and records and step < (records[-1].get("step") or 0):
            records.clear()
            runs += 1
        total = integer(line.get("total_steps")) or total
        finished = step == total if step is not None and total else None
        record = {_KEYS[k]: v for k, v in line.items() if k in _KEYS and v is not None}
        if record.keys() - {"step", "epoch", "num_tokens"}:
            records.append(record)
    if runs > 1:
        remarks.note(f"{path.name} holds {runs} runs one after the other; the last was read.")
    if not records:
        remarks.note(f"{path.name} holds no log entry.")
        return None
    return TrainerLog(
        records=tuple(records),
        global_step=total if finished else integer(records[-1].get("step")),
        max_steps=total,
        epoch=number(records[-1].get("epoch")),
        finished=finished,
        source=path.name,
    )
