"""Settings from the arguments of transformers' Trainer and of what is built on it.

They come out of ``training_args.bin``, TensorBoard's ``args/text_summary``, or the config that
wandb keeps; all three hold every argument of the run, so that nothing has to be filled in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradian_core.runs.artifact import Value
from gradian_core.runs.evidence import found
from gradian_core.runs.settings import SETTINGS

from ._files import integer
from ._optimisers import optimiser

__all__ = ["argument_values", "looks_like_arguments", "stage_of", "stage_of_tags", "tool_of"]

_STAGES = {
    "sft": "sft",
    "dpo": "dpo",
    "kto": "kto",
    "orpo": "orpo",
    "cpo": "cpo",
    "bco": "bco",
    "grpo": "grpo",
    "rloo": "rloo",
    "ppo": "ppo",
    "reward": "rm",
    "prm": "rm",
    "gkd": "gkd",
    "online": "dpo",
    "xpo": "dpo",
    "nash": "dpo",
}
_MODULES = {
    "unsloth": "unsloth",
    "axolotl": "axolotl",
    "llamafactory": "llamafactory",
    "llmtuner": "llamafactory",
    "trl": "trl",
}
_NOT_OURS = frozenset({"base_model", "datasets", "num_layers", "finetuning_type", "has_eval_set"})
"""Normalised names that an argument of the same name would not mean."""


def looks_like_arguments(values: Mapping[str, Any]) -> bool:
    """Return whether these are arguments of a Trainer."""
    wanted = {"learning_rate", "per_device_train_batch_size", "gradient_accumulation_steps"}
    return wanted <= values.keys()


def tool_of(class_name: str) -> str:
    """Return the tool whose class of arguments this is (``trl.trainer.sft_config.SFTConfig``)."""
    module, _, name = class_name.rpartition(".")
    if name.startswith("Unsloth"):
        return "unsloth"
    return _MODULES.get(module.split(".")[0].lower().removeprefix("__"), "transformers")


def stage_of(class_name: str) -> str | None:
    """Return what is trained, as the class of the arguments tells it."""
    name = class_name.rpartition(".")[2].removeprefix("Unsloth").removeprefix("Axolotl").lower()
    if not name.endswith("config"):
        return None
    return next((stage for start, stage in _STAGES.items() if name.startswith(start)), None)


def stage_of_tags(tags: Iterable[str]) -> str | None:
    """Return what is trained, as the tags tell it that trl puts into its card."""
    known = sorted(_STAGES[tag] for tag in tags if tag in _STAGES)
    return known[0] if known else None


def argument_values(
    arguments: Mapping[str, Any], source: str, tool: str, stage: str | None = None
) -> dict[str, Value]:
    """Return the settings among a Trainer's arguments.

    Parameters
    ----------
    arguments
        All of them, by name.
    source
        Where they stand.
    tool
        As :func:`tool_of`.
    stage
        As :func:`stage_of`.
    """
    values = {
        name: value
        for name, value in arguments.items()
        if name in SETTINGS and name not in _NOT_OURS
    }
    values |= _renamed(arguments)
    # axolotl's and LLaMA-Factory's arguments hold further fields of these names that mean less
    # than their own configs do, and a plain Trainer has none
    for name in ("max_seq_length", "packing", "chat_template", "train_on_prompt"):
        if tool not in ("trl", "unsloth"):
            values.pop(name, None)
    if stage is not None:
        values["stage"] = stage
    if tool in ("trl", "unsloth"):
        values |= _length(arguments)
    settings = found(values, source, "ran")
    settings |= _evaluation(arguments, source)
    if tool in ("trl", "unsloth") and "max_seq_length" not in settings:
        settings |= _old_length(source)
    return settings


def _renamed(arguments: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if (optim := arguments.get("optim")) is not None:
        values["optim"] = "adafactor" if arguments.get("adafactor") else optimiser(str(optim))
    if arguments.get("eval_strategy") is None and arguments.get("evaluation_strategy"):
        values["eval_strategy"] = arguments["evaluation_strategy"]
    if "max_grad_norm" in arguments and arguments["max_grad_norm"] is None:
        values["max_grad_norm"] = 0.0
    if strategy := arguments.get("train_sampling_strategy"):
        values["group_by_length"] = strategy == "group_by_length"
    devices = integer(arguments.get("_n_gpu"))
    state = arguments.get("distributed_state")
    processes = integer(state.get("num_processes")) if isinstance(state, Mapping) else None
    if processes is not None:
        values["world_size"] = max(processes, 1) * max(devices or 1, 1)
    kwargs = arguments.get("model_init_kwargs")
    if isinstance(kwargs, Mapping) and isinstance(kwargs.get("attn_implementation"), str):
        values["attn_implementation"] = kwargs["attn_implementation"]
    return values


def _length(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return trl's length: max_seq_length up to 0.19, max_length since 0.16."""
    values: dict[str, Any] = {"overlong_rows": "cut_right"}
    if arguments.get("truncation_mode") == "keep_end":
        values["overlong_rows"] = "cut_left"
    if arguments.get("max_seq_length") is not None:
        values["max_seq_length"] = arguments["max_seq_length"]
    elif "max_length" in arguments:
        values["max_seq_length"] = arguments["max_length"]
    return values


def _old_length(source: str) -> dict[str, Value]:
    origin = f"{source}: max_seq_length is not set; trl before 0.16 then takes 1024"
    return {"max_seq_length": Value(1024, origin, "default")}


def _evaluation(arguments: Mapping[str, Any], source: str) -> dict[str, Value]:
    strategy = arguments.get("eval_strategy") or arguments.get("evaluation_strategy")
    if strategy is None:
        return {}
    return {"has_eval_set": Value(strategy != "no", f"{source} (eval_strategy {strategy})", "ran")}
