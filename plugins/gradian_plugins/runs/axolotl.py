"""Runs of axolotl: its YAML config, by itself or inside the model card that axolotl writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradian_core.runs.artifact import AdapterInfo, RunArtifact, TrainingConfig, Value
from gradian_core.runs.evidence import settle
from gradian_core.runs.settings import coerce

from ._axolotl_keys import DEFAULTS, NAMES, requested, unknown_keys
from ._card import read_card
from ._files import Remarks, head, integer, number
from ._peft import described_adapter
from ._places import Places
from ._tool_config import asked, config_of, defaults, flag, has_config
from ._yaml import YamlConfig

__all__ = ["AxolotlRunReader"]

_CARD = "README.md"
_MARK = "axolotl version: `"
_OWN = frozenset(
    {
        "base_model",
        "dataset_prepared_path",
        "lora_model_dir",
        "lora_r",
        "lora_target_linear",
        "micro_batch_size",
        "num_epochs",
        "sample_packing",
        "sequence_len",
        "val_set_size",
    }
)
"""Keys that, two together, no other tool has."""
_VARLEN = tuple(f"{kernel}_attention" for kernel in ("flash", "flex", "sage", "sdp", "xformers"))
"""Attention that keeps packed rows apart."""
_PEFT = {
    "peft_use_rslora": "use_rslora",
    "peft_use_dora": "use_dora",
    "peft_layers_to_transform": "layers_to_transform",
    "peft_init_lora_weights": "init_lora_weights",
    "lora_modules_to_save": "modules_to_save",
    "lora_target_parameters": "target_parameters",
    "lora_rank_pattern": "rank_pattern",
    "lora_alpha_pattern": "alpha_pattern",
    "lora_fan_in_fan_out": "fan_in_fan_out",
}
_SPECIAL = ("pad_token", "eos_token", "bos_token")


class AxolotlRunReader:
    """Reads axolotl's config."""

    def can_read(self, path: Path) -> bool:
        """Whether there is a config of axolotl's, or a card that holds one."""
        if path.is_file() and path.suffix.lower() == ".md":
            return _MARK in head(path)
        card = Places(path).find(_CARD)
        if card is not None and _MARK in head(card):
            return True
        return has_config(path, _is_axolotl)

    def read(self, path: Path) -> RunArtifact:
        """Read the config; that of the card, which axolotl itself wrote, comes first.

        Raises
        ------
        InputError
            If it is damaged.
        """
        remarks = Remarks()
        config, version = _embedded(path, remarks)
        if config is None:
            config = config_of(path, _is_axolotl, remarks)
        remarks.insist(config, path)
        if config is None:
            return RunArtifact(
                path=path,
                reader="axolotl",
                notes=tuple(remarks.notes),
                refusals=remarks.refusals,
            )
        adapter = _adapter(config, path, remarks)
        values, _ = settle(
            [
                _whole_text(config),
                asked(config, NAMES),
                _derived(config),
                defaults("axolotl", DEFAULTS),
            ]
        )
        _drop_shadowed(values)
        _refuse_other_stages(values, remarks)
        return RunArtifact(
            path=path,
            reader="axolotl",
            training=TrainingConfig(
                tool="axolotl",
                version=version.value if version else None,
                values=values,
                requested=requested(config),
                unknown_keys=unknown_keys(config),
                versions={"axolotl": version} if version else {},
            ),
            adapter=adapter,
            notes=tuple(remarks.notes),
            refusals=remarks.refusals,
        )


def _is_axolotl(values: Mapping[str, Any]) -> bool:
    return len(_OWN & values.keys()) >= 2 and "iters" not in values


def _embedded(path: Path, remarks: Remarks) -> tuple[YamlConfig | None, Value | None]:
    card_path = path if path.is_file() else Places(path).find(_CARD)
    if card_path is None or card_path.suffix.lower() != ".md" or _MARK not in head(card_path):
        return None, None
    card = remarks.attempt(card_path, read_card)
    if card is None:
        return None, None
    for problem in card.problems:
        remarks.fail(problem)
    if card.axolotl is None:
        return None, None
    version, config = card.axolotl
    for note in config.notes:
        remarks.note(note)
    return config, Value(version, f"{card_path.name} (axolotl version)", "ran")


def _adapter(config: YamlConfig, path: Path, remarks: Remarks) -> AdapterInfo | None:
    values = config.values
    kind = values.get("adapter")
    if kind not in ("lora", "qlora"):
        if kind:
            text = f"{config.where('adapter')}: the adapter {kind} is not LoRA."
        else:
            text = f"{config.name} has no key 'adapter': axolotl then trains the whole model."
        remarks.refuse("not_a_lora_run", text)
        return None
    targets = values.get("lora_target_modules")
    if flag(values.get("lora_target_linear")) is True:
        targets = "all-linear"
    raw = {
        "r": integer(number(values.get("lora_r"))),
        "lora_alpha": number(values.get("lora_alpha")),
        "lora_dropout": number(values.get("lora_dropout") or 0.0),
        "target_modules": targets,
        "use_rslora": False,
        "use_dora": False,
    }
    for key, name in _PEFT.items():
        if values.get(key) is not None:
            raw[name] = values[key]
    where = config.where("lora_r" if "lora_r" in values else "adapter")
    return described_adapter(path, raw, where, values.get("base_model"))


def _derived(config: YamlConfig) -> dict[str, Value]:
    """Return settings that take more than one key, or whose meaning is axolotl's own."""
    values = config.values
    derived: dict[str, Value] = {}
    held_out = number(values.get("val_set_size")) or 0.0
    tests = values.get("test_datasets")
    key = "test_datasets" if tests else "val_set_size"
    if key in values:
        derived["has_eval_set"] = Value(bool(tests) or held_out > 0, config.where(key))
    else:
        derived["has_eval_set"] = Value(False, "default of axolotl (val_set_size 0)", "default")
    if flag(values.get("sample_packing")) is True:
        varlen = next((k for k in _VARLEN if flag(values.get(k)) is True), None)
        attention = str(values.get("attn_implementation") or "")
        if varlen is None and any(word in attention for word in ("flash", "flex", "varlen")):
            varlen = "attn_implementation"
        where = config.where(varlen) if varlen else f"{config.name} (no attention that allows it)"
        derived["packing_isolated"] = Value(varlen is not None, where)
    special = values.get("special_tokens")
    tokens = special if isinstance(special, dict) else {}
    for name in _SPECIAL:
        if tokens.get(name) is not None:
            derived[name] = Value(tokens[name], config.where("special_tokens", name))
    if (strategy := values.get("excess_length_strategy")) is not None:
        rule = "cut_right" if strategy == "truncate" else str(strategy)
        derived["overlong_rows"] = Value(rule, config.where("excess_length_strategy"))
    if values.get("rl"):
        derived["stage"] = Value(str(values["rl"]).lower(), config.where("rl"))
    elif values.get("pretraining_dataset"):
        derived["stage"] = Value("pt", config.where("pretraining_dataset"))
    kind = values.get("adapter")
    source = config.where("adapter") if kind else f"{config.name} (no key 'adapter')"
    method = "lora" if kind == "qlora" else str(kind or "full")
    derived["finetuning_type"] = Value(method, source)
    return derived | _warmup(config)


def _warmup(config: YamlConfig) -> dict[str, Value]:
    """Return the warmup: steps, else the ratio, else 3 %; one step becomes two."""
    steps = coerce("warmup_steps", config.values.get("warmup_steps"))
    ratio = coerce("warmup_ratio", config.values.get("warmup_ratio"))
    if steps:
        return {"warmup_steps": Value(2 if steps == 1 else steps, config.where("warmup_steps"))}
    if ratio:
        return {"warmup_ratio": Value(ratio, config.where("warmup_ratio"))}
    origin = "default of axolotl (warmup 3 %, at most 100 steps)"
    return {"warmup_ratio": Value(0.03, origin, "default")}


def _whole_text(config: YamlConfig) -> dict[str, Value]:
    """Return that prompts are trained on where a data set is of type ``completion``."""
    listed = config.values.get("datasets")
    for position, entry in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(entry, dict) and entry.get("type") in ("completion", "pretrain"):
            where = config.where("datasets", position, "type")
            return {"train_on_prompt": Value(True, f"{where} (type: {entry['type']})")}
    return {}


def _drop_shadowed(values: dict[str, Value]) -> None:
    """bf16 wins over fp16, and a total batch size over accumulation that was not asked for."""
    if values["bf16"].basis == "asked" and values["bf16"].value and not values["fp16"].value:
        values["fp16"] = Value(False, values["bf16"].source, "inferred")
    accumulation = values["gradient_accumulation_steps"]
    if "total_train_batch_size" in values and accumulation.basis == "default":
        del values["gradient_accumulation_steps"]


def _refuse_other_stages(values: Mapping[str, Value], remarks: Remarks) -> None:
    stage = values["stage"]
    if stage.value not in ("sft", "pt"):
        text = f"{stage.source}: this run is {str(stage.value).upper()}, not supervised."
        remarks.refuse("not_sft", text)
