"""Training scripts in Python: the constants in their calls, read from the text, never executed.

Read are literal arguments of ``TrainingArguments``, ``SFTConfig``, ``LoraConfig``, unsloth's
``get_peft_model`` and ``from_pretrained``. What is computed when the script runs is named in a
note and stays unknown; what the script does not set has the tool's default.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradian_core.errors import InputError
from gradian_core.runs.artifact import AdapterInfo, RunArtifact, TrainingConfig, Value
from gradian_core.runs.evidence import found

from ._arguments import argument_values
from ._files import Remarks, head, text_of
from ._peft import described_adapter

__all__ = ["ScriptRunReader"]

_ARGUMENTS = {
    "TrainingArguments": "transformers",
    "Seq2SeqTrainingArguments": "transformers",
    "SFTConfig": "trl",
}
_ADAPTERS = ("LoraConfig", "get_peft_model")
_LOADERS = ("AutoModelForCausalLM", "FastLanguageModel", "FastModel")
_CALLS = (*_ARGUMENTS, "LoraConfig", "FastLanguageModel")
_MOST_BYTES = 1 << 20
_MOST_NAMED = 8
_SPECIFICITY = 15
_DEFAULTS: Mapping[str, Any] = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "num_train_epochs": 3.0,
    "learning_rate": 5e-5,
    "lr_scheduler_type": "linear",
    "max_grad_norm": 1.0,
    "seed": 42,
}
"""Of transformers 4.31 to 5.24."""
_TRL_RATE = 2e-5
_PEFT_DEFAULTS = {"r": 8, "lora_alpha": 8, "lora_dropout": 0.0}
_UNSLOTH_DEFAULTS = {"r": 16, "lora_alpha": 16, "lora_dropout": 0.0}


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    line: int
    values: Mapping[str, Any]
    lines: Mapping[str, int]
    computed: tuple[str, ...] = ()
    unpacked: bool = False
    first: Any = field(default=None)


class ScriptRunReader:
    """Reads training scripts."""

    def can_read(self, path: Path) -> bool:
        """Whether it is a Python file that mentions one of the calls."""
        if not path.is_file() or path.suffix.lower() != ".py":
            return False
        text = head(path)
        return any(name in text for name in _CALLS)

    def read(self, path: Path) -> RunArtifact:
        """Read the constants.

        Raises
        ------
        InputError
            If the file is too large or is no Python.
        """
        remarks = Remarks()
        calls = list(_calls(_tree(path)))
        arguments = _first(calls, tuple(_ARGUMENTS), path, remarks)
        lora = _first(calls, _ADAPTERS, path, remarks)
        base = _base_model(calls)
        unsloth = any(call.name.startswith("Fast") for call in calls)
        for call in (arguments, lora):
            if call is not None:
                _say_unread(call, path, remarks)
        training = None
        if arguments is not None:
            tool = "unsloth" if unsloth else _ARGUMENTS[arguments.name]
            training = TrainingConfig(
                tool=tool, version=None, values=_settings(arguments, path, base)
            )
        return RunArtifact(
            path=path,
            reader="script",
            training=training,
            adapter=_adapter(lora, path, base),
            log=None,
            notes=tuple(remarks.notes),
            refusals=remarks.refusals,
            specificity=_SPECIFICITY,
        )


def _tree(path: Path) -> ast.Module:
    text = text_of(path, _MOST_BYTES)
    try:
        return ast.parse(text)
    except SyntaxError as error:
        where, what = f"{path}:{error.lineno}", error.msg
    except (ValueError, RecursionError, MemoryError):
        where, what = str(path), "it cannot be parsed"
    raise InputError(f"{where} is no Python: {what}.")


def _calls(tree: ast.Module) -> Iterator[_Call]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        name = _name(node.func)
        if name is None:
            continue
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        computed: list[str] = []
        for keyword in node.keywords:
            if keyword.arg is None:
                continue
            try:
                values[keyword.arg] = ast.literal_eval(keyword.value)
                lines[keyword.arg] = keyword.value.lineno
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                computed.append(keyword.arg)
        yield _Call(
            name,
            node.lineno,
            values,
            lines,
            tuple(computed),
            any(keyword.arg is None for keyword in node.keywords),
            node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None,
        )


def _name(function: ast.expr) -> str | None:
    if isinstance(function, ast.Name):
        return function.id
    if not isinstance(function, ast.Attribute):
        return None
    if function.attr == "from_pretrained":
        owner = _name(function.value)
        return f"{owner}.from_pretrained" if owner else None
    return function.attr


def _first(
    calls: list[_Call], names: tuple[str, ...], path: Path, remarks: Remarks
) -> _Call | None:
    # get_peft_model of peft takes a model and a LoraConfig: it sets nothing itself
    fitting = [c for c in calls if c.name in names and (c.name != "get_peft_model" or c.values)]
    if len(fitting) > 1:
        lines = ", ".join(str(call.line) for call in fitting[:_MOST_NAMED])
        remarks.note(
            f"{path.name} calls {fitting[0].name} and the like at lines {lines}; "
            f"line {fitting[0].line} was read."
        )
    return fitting[0] if fitting else None


def _say_unread(call: _Call, path: Path, remarks: Remarks) -> None:
    if call.computed:
        named = ", ".join(call.computed[:_MOST_NAMED])
        more = len(call.computed) - _MOST_NAMED
        named += f" and {more} more" if more > 0 else ""
        remarks.note(f"{path.name}:{call.line}: {named} of {call.name} are computed; not read.")
    if call.unpacked:
        remarks.note(
            f"{path.name}:{call.line}: {call.name} takes unpacked arguments (**); not read."
        )


def _settings(call: _Call, path: Path, base: Value | None) -> dict[str, Value]:
    where = f"{path.name}:{call.line}"
    read = argument_values(call.values, where, _ARGUMENTS[call.name])
    settings = {
        name: Value(value.value, f"{path.name}:{call.lines.get(name, call.line)}", "asked")
        for name, value in read.items()
        if value.basis != "default"
    }
    if base is not None:
        settings["base_model"] = base
    if call.name == "SFTConfig":
        settings["stage"] = Value("sft", where, "asked")
    if not call.unpacked:
        rate = {"learning_rate": _TRL_RATE} if call.name == "SFTConfig" else {}
        defaults = found({**_DEFAULTS, **rate}, f"default of {_ARGUMENTS[call.name]}", "default")
        known = {*settings, *call.computed}
        settings |= {name: value for name, value in defaults.items() if name not in known}
    return settings


def _adapter(call: _Call | None, path: Path, base: Value | None) -> AdapterInfo | None:
    if call is None:
        return None
    defaults = _PEFT_DEFAULTS if call.name == "LoraConfig" else _UNSLOTH_DEFAULTS
    if call.unpacked:
        defaults = {}
    raw: dict[str, Any] = {k: v for k, v in defaults.items() if k not in call.computed}
    raw = {"peft_type": "LORA", **raw, **call.values}
    return described_adapter(
        path.parent, raw, f"{path.name}:{call.line}", None if base is None else base.value, "asked"
    )


def _base_model(calls: list[_Call]) -> Value | None:
    return next(
        (
            Value(name, "the script's from_pretrained", "asked")
            for call in calls
            if call.name in {f"{owner}.from_pretrained" for owner in _LOADERS}
            for name in (call.first, call.values.get("model_name"))
            if isinstance(name, str)
        ),
        None,
    )
