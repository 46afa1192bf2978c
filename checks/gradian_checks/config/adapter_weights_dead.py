"""``config.adapter_weights_dead``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._weights import Weights, adapter_weights
from gradian_checks._weights_sample import adapter_with
from gradian_core.audit.facts import NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo

_PICKLE = "adapter_model.bin"
_EMPTY = 1024
_LFS = b"version https://git-lfs"
_SHOWN = 5


def _sample(value: float) -> dict[str, object]:
    one = np.ones((2, 4), np.float32)
    return {
        "adapter": adapter_with(
            {"q_proj.lora_A.weight": one, "q_proj.lora_B.weight": np.full_like(one.T, value)}
        )
    }


@check(
    severity=Severity.CRITICAL,
    since="0.1",
    trips=lambda: _sample(0.0),
    clean=lambda: _sample(0.01),
)
def adapter_weights_dead(adapter: AdapterInfo) -> Iterator[Finding]:
    """Adapter weights that do nothing, or are not numbers.

    Why it matters: a LoRA adapter starts with B at zero. Where B is zero at the end as well, the
    run trained nothing or saved the wrong thing, and every answer is the base model's.

    How to fix: look for a loss of zero or NaN in the log, frozen parameters, or a ``state_dict``
    patch before saving that empties the file; then train again.

    Threshold: all B matrices zero, any value NaN or infinite, or a file without any LoRA tensor or
    below 1 KB (critical).

    Not assessed: without weights in the run folder, for Git-LFS pointers, for damaged files and
    for number formats that numpy does not have.
    """
    if adapter.peft_type.upper() != "LORA":
        raise NotAssessed(f"Not a LoRA adapter: its method is {adapter.peft_type}.")
    old = (adapter.path if adapter.path.is_dir() else adapter.path.parent) / _PICKLE
    if old.is_file() and old.stat().st_size < _EMPTY:
        if old.read_bytes().startswith(_LFS):
            raise NotAssessed(f"{old} is a Git-LFS pointer: run 'git lfs pull' for the weights.")
        yield _finding(f"{_PICKLE} is empty", {"file": old.name, "bytes": old.stat().st_size})
        return
    weights = adapter_weights(adapter)
    lora = sorted(name for name in weights.tensors if "lora_" in name)
    evidence: dict[str, object] = {"file": weights.path.name, "bytes": weights.file_size}
    if not lora:
        yield _finding("The adapter's file holds no LoRA weights", evidence)
        return
    zero, broken, second = _look(weights, lora)
    evidence |= {"tensors": len(lora), "b_matrices": second}
    if broken:
        evidence |= {"not_finite": len(broken), "first": broken[:_SHOWN]}
        yield _finding(
            f"{len(broken)} of {len(lora)} adapter tensors hold NaN or infinity", evidence
        )
    elif second and zero == second:
        yield _finding(f"All {second} B matrices of the adapter are zero", evidence)


def _look(weights: Weights, names: list[str]) -> tuple[int, list[str], int]:
    """Return the number of zero B matrices, the tensors that are not finite, and the number of B.

    Raises
    ------
    NotAssessed
        If a tensor has a number format that cannot be read.
    """
    zero, second, broken = 0, 0, []
    for name in names:
        values = weights.read(name)
        if values is None:
            kind = weights.tensors[name].dtype
            raise NotAssessed(f"{weights.path} holds {kind} numbers, which are not read.")
        if not np.isfinite(values).all():
            broken.append(name)
        if "lora_B" in name or "lora_embedding_B" in name:
            second += 1
            zero += not values.any()
    return zero, broken, second


def _finding(title: str, evidence: dict[str, object]) -> Finding:
    return Finding(
        id="config.adapter_weights_dead",
        severity=Severity.CRITICAL,
        title=title,
        detail="With this adapter the model answers as if it had not been trained, or not at all.",
        fix="Train again; check the log for a loss of zero or NaN, and how the adapter is saved.",
        evidence=evidence,
    )
