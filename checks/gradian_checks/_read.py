"""Reading normalised settings: numbers, flags, and how they are known."""

from __future__ import annotations

import math
import re

from gradian_core.audit.facts import NotAssessed
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

__all__ = [
    "as_number",
    "by_default",
    "count",
    "flag",
    "known",
    "model_name",
    "number",
    "origin",
    "require_sft",
    "short",
    "shown_value",
    "spelled",
    "text",
    "version",
]

_NOT_SFT = frozenset({"dpo", "kto", "orpo", "cpo", "grpo", "ppo", "rm", "reward", "simpo", "rloo"})
_ADAMW = re.compile(r"adamw|^(?:paged_?)?adam(?:$|_|\d)")
_OTHER_RULES = re.compile(r"schedule_?free|galore|apollo|grok|ademamix|adam_?mini")


def known(training: TrainingConfig | None, name: str) -> bool:
    """Whether a setting was found at all, be it set to nothing."""
    return training is not None and name in training.values


def as_number(value: object) -> float | None:
    """Return a value as a float; None for flags, NaN, text, and numbers that no float holds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        made = float(value)
    except OverflowError:
        return None
    return None if math.isnan(made) else made


def number(training: TrainingConfig | None, name: str) -> float | None:
    """Return a setting as a number (infinity counts, NaN and flags do not), else None."""
    return as_number(None if training is None else training.get(name))


def count(training: TrainingConfig | None, name: str) -> int | None:
    """Return a setting as a positive whole number, None for anything else (-1 means no cap)."""
    value = number(training, name)
    return int(value) if value is not None and 1 <= value < math.inf else None


def flag(training: TrainingConfig | None, name: str) -> bool | None:
    """Return a setting that is true or false, None for anything else (``'auto'``)."""
    value = None if training is None else training.get(name)
    return value if isinstance(value, bool) else None


def text(training: TrainingConfig | None, name: str) -> str | None:
    """Return a setting that is text, in lower case, else None."""
    value = None if training is None else training.get(name)
    return value.strip().lower() if isinstance(value, str) else None


def spelled(training: TrainingConfig | None, name: str) -> str | None:
    """Return a setting that is text as it is written, None for anything else or empty text."""
    value = None if training is None else training.get(name)
    return value if isinstance(value, str) and value else None


def model_name(training: TrainingConfig | None, adapter: AdapterInfo | None) -> str | None:
    """Return the base model as the adapter names it, or else as the settings do."""
    named = None if adapter is None else adapter.base_model
    return named or spelled(training, "base_model")


def by_default(training: TrainingConfig, name: str) -> bool:
    """Whether nobody set it: the value is the tool's default."""
    found = training.values.get(name)
    return found is not None and found.basis == "default"


def origin(training: TrainingConfig, name: str) -> str:
    """Return where a setting was found, as words."""
    found = training.values.get(name)
    return "not recorded" if found is None else found.source


def short(value: float) -> str:
    """Return a number as people write it in configs: ``2e-4``, ``0.05``, ``12``."""
    if math.isfinite(value) and value and (abs(value) < 1e-2 or abs(value) >= 1e6):
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:.4g}"


def require_sft(training: TrainingConfig) -> None:
    """Refuse to judge runs whose learning rates follow other rules.

    Raises
    ------
    NotAssessed
        For preference and reinforcement learning, and for optimisers other than AdamW's family.
    """
    stage = text(training, "stage")
    if stage in _NOT_SFT:
        raise NotAssessed(f"These thresholds are for supervised fine-tuning; this run is {stage}.")
    optimiser = text(training, "optim")
    if optimiser is None:
        return
    name = optimiser.rsplit(".", 1)[-1]
    if not _ADAMW.search(name) or _OTHER_RULES.search(name):
        raise NotAssessed(f"These thresholds are for AdamW; the optimiser is {optimiser}.")


def version(training: TrainingConfig, package: str) -> tuple[int, ...] | None:
    """Return the release of a package as numbers, such as ``(0, 19, 1)``, None if unknown."""
    found = training.versions.get(package)
    name = found.value if found is not None else None
    if name is None and training.tool == package:
        name = training.version
    match = re.match(r"v?(\d{1,8}(?:\.\d{1,8}){0,5})", str(name or ""))
    return tuple(int(part) for part in match[1].split(".")) if match else None


def shown_value(value: object) -> str:
    """Return a value of a config as people write it, cut to a readable length."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if (made := as_number(value)) is not None:
        return short(made)
    words = "a huge number" if isinstance(value, int) else str(value)
    return words if len(words) <= 60 else f"{words[:57]}..."
