"""Whether the checkpoints of a folder are of one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradian_core.text import excerpt

from ._files import Remarks

__all__ = ["adapter_identity", "compare_checkpoints"]


def compare_checkpoints(identities: Mapping[str, Mapping[str, Any]], remarks: Remarks) -> None:
    """Say where checkpoints differ in what all those of one run share.

    Parameters
    ----------
    identities
        Those values, by the checkpoint's name.
    """
    keys = dict.fromkeys(key for identity in identities.values() for key in identity)
    for key in keys:
        seen = {name: identity[key] for name, identity in identities.items() if key in identity}
        if len({str(value) for value in seen.values()}) > 1:
            listed = ", ".join(f"{excerpt(str(v), 80)} in {name}" for name, v in seen.items())
            remarks.note(f"The checkpoints are not of one run: {key} is {listed}.")


def adapter_identity(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the adapters of one run share."""
    identity = {key: raw[key] for key in ("r", "lora_alpha", "lora_dropout") if key in raw}
    targets = raw.get("target_modules")
    if isinstance(targets, list):
        # a set when it was saved, so its order means nothing
        identity["target_modules"] = sorted(map(str, targets))
    return identity
