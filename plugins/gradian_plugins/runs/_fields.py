"""Which keys tools know, and since which version: read from ``_fields.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from gradian_core.runs.artifact import Value

__all__ = ["fields", "fitting_version", "release"]

_TRANSFORMERS: Mapping[str, tuple[str | None, str | None]] = {
    "average_tokens_across_devices": ("4.46", None),
    "batch_eval_metrics": ("4.41", None),
    "eval_on_start": ("4.42", None),
    "eval_strategy": ("4.41", None),
    "eval_use_gather_object": ("4.45", None),
    "evaluation_strategy": (None, "4.50"),
    "fp16_backend": (None, "4.57"),
    "group_by_length": (None, "4.57"),
    "include_for_metrics": ("4.46", None),
    "overwrite_output_dir": (None, "4.57"),
    "tp_size": ("4.50", "4.52"),
    "train_sampling_strategy": ("5.0", None),
    "use_liger_kernel": ("4.45", None),
    "warmup_ratio": (None, "4.57"),
}
"""First and last minor version with a field of TrainingArguments; None where it does not matter."""
_MINORS = [f"4.{minor}" for minor in range(31, 58)] + [f"5.{minor}" for minor in range(25)]


@cache
def fields() -> dict[str, Any]:
    """Return the tables of known keys, by tool."""
    content = files(__package__).joinpath("_fields.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(content)
    return tables


def release(version: str) -> tuple[int, ...]:
    """Return the numbers at the start of a version: ``5.0.0rc1`` gives (5, 0, 0)."""
    numbers: list[int] = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits or len(digits) > 9:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


def fitting_version(package: str, keys: Iterable[str], file: str) -> dict[str, Value]:
    """Return the oldest version of a package whose fields are these keys, if it is close.

    Parameters
    ----------
    package
        ``peft``, ``trl`` or ``transformers``.
    keys
        Keys of a file that the package wrote; others may be among them.
    file
        Name of the file, for the source.

    Returns
    -------
    dict
        The package and its version; empty where more than three minor versions fit.
    """
    if package == "transformers":
        versions, table = _MINORS, _TRANSFORMERS
    else:
        versions, table = fields()[package]["versions"], fields()[package]["fields"]
    present = set(keys)
    fits = [version for version in versions if _fits(version, table, present)]
    minors = dict.fromkeys(release(version)[:2] for version in fits)
    if not fits or len(minors) > 3:
        return {}
    extent = fits[0] if fits[0] == fits[-1] else f"{fits[0]} to {fits[-1]}"
    return {package: Value(fits[0], f"keys of {file}, which fit {package} {extent}", "inferred")}


def _fits(
    version: str, table: Mapping[str, tuple[str | None, str | None]], present: set[str]
) -> bool:
    this = release(version)
    for name, (first, last) in table.items():
        known = (first is None or release(first) <= this) and (
            last is None or this[: len(release(last))] <= release(last)
        )
        if known != (name in present):
            return False
    return True
