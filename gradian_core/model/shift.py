"""Moving a loaded adapter to another point of parameter space, and back to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from gradian_core.errors import InputError
from gradian_core.model.adapter import read_adapter
from gradian_core.model.loaded import LoadedModel
from gradian_core.model.quiet import quiet
from gradian_core.model.sites import attributable_parameters, find_sites

__all__ = ["shifted"]

_SECOND = (".lora_B.", ".lora_embedding_B.")


@contextmanager
def shifted(
    loaded: LoadedModel,
    home: Path,
    *,
    adapter_scale: float = 1.0,
    checkpoint: Path | None = None,
) -> Iterator[tuple[str, ...]]:
    """Hold a model at another point for the time of a pass.

    Tensors are changed in place, so that what has hooked or planned over them stays right.

    Parameters
    ----------
    loaded
        Model with adapter.
    home
        Folder of that adapter, to which the model returns.
    adapter_scale
        Every ``lora_B`` is multiplied by it and A kept. The update of the weights is then
        multiplied as by PEFT's ``scaling``, but the gradient of A shrinks with it.
    checkpoint
        Folder of another adapter of the same run, taken in place of the loaded one.

    Yields
    ------
    tuple of str
        What does not move along, as sentences.

    Raises
    ------
    InputError
        If the checkpoint does not fit the adapter.
    """
    notes = []
    try:
        if checkpoint is not None:
            _take(loaded, checkpoint, home)
        tensors = _tensors(loaded)
        kept = {name: t.detach().clone() for name, t in tensors.items() if _is_second(name)}
        try:
            if adapter_scale != 1.0:
                notes = _fixed(loaded, tensors)
                with torch.no_grad():
                    for name in kept:
                        tensors[name].mul_(adapter_scale)
            yield tuple(notes)
        finally:
            with torch.no_grad():
                for name, tensor in kept.items():
                    tensors[name].copy_(tensor)
    finally:
        if checkpoint is not None:
            _load(loaded, home)


def _tensors(loaded: LoadedModel) -> dict[str, Any]:
    assert loaded.adapter is not None
    return attributable_parameters(find_sites(loaded.model, loaded.adapter))


def _is_second(name: str) -> bool:
    return any(mark in name for mark in _SECOND)


def _fixed(loaded: LoadedModel, tensors: dict[str, Any]) -> list[str]:
    """Say what an adapter trained that its scale does not touch."""
    config = loaded.model.peft_config[loaded.adapter]
    fixed = [str(name) for name in config.modules_to_save or ()]
    if any("magnitude" in name for name in tensors):
        fixed.append("DoRA magnitudes")
    if getattr(config, "bias", "none") != "none":
        fixed.append("biases")
    if not fixed:
        return []
    return [f"The adapter's scale does not change what else was trained: {', '.join(fixed)}."]


def _take(loaded: LoadedModel, checkpoint: Path, home: Path) -> None:
    ours, theirs = read_adapter(home), read_adapter(checkpoint)
    differing = [
        key
        for key in ("r", "lora_alpha", "use_rslora", "use_dora", "rank_pattern", "alpha_pattern")
        if ours.raw.get(key) != theirs.raw.get(key)
    ]
    if differing:
        raise InputError(
            f"The checkpoint {checkpoint} is no earlier state of the adapter: they differ in "
            f"{', '.join(differing)}.",
            hint="Leave it out of the run folder.",
        )
    _load(loaded, checkpoint)


def _load(loaded: LoadedModel, folder: Path) -> None:
    from peft import get_peft_model_state_dict, set_peft_model_state_dict
    from peft.utils.save_and_load import load_peft_weights

    try:
        weights = load_peft_weights(str(folder), device="cpu")
        with quiet():
            here = get_peft_model_state_dict(
                loaded.model, adapter_name=loaded.adapter, save_embedding_layers=False
            )
            odd = sorted(
                {name for name in weights if "lora_" in name}
                ^ {name for name in here if "lora_" in name}
            )
            if odd:
                raise ValueError(f"{len(odd)} tensors do not match ({', '.join(odd[:3])})")
            set_peft_model_state_dict(loaded.model, weights, adapter_name=loaded.adapter)
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"The checkpoint {folder} does not fit the adapter: "
            f"{next(iter(str(error).splitlines()), type(error).__name__)}."
        ) from error
