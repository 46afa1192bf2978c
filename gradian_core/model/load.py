"""Loading a base model with its adapter, so that both can be measured and differentiated."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from gradian_core.config.models import Config
from gradian_core.errors import CannotRunError, InputError
from gradian_core.model.adapter import find_adapter, read_adapter
from gradian_core.model.device import resolve_device, resolve_dtype
from gradian_core.model.loaded import LoadedModel
from gradian_core.model.quiet import quiet
from gradian_core.model.sites import attributable_parameters, find_sites
from gradian_core.model.source import BaseSource, resolve_base
from gradian_core.runs.artifact import AdapterInfo
from gradian_core.text import excerpt

__all__ = ["load_model", "load_tokenizer"]

_UNKNOWN_KEYS = "Unexpected keyword arguments"
"""PEFT's words for settings that it ignores; a note names them."""

_GGUF_NOTE = (
    "The base model is a .gguf file: its weights are used as its quantisation left them. If the "
    "adapter was trained on the unquantised model, answers and gradients differ from that model's."
)


def load_tokenizer(config: Config, source: BaseSource) -> Any:
    """Load the base model's tokenizer, or the one that ``config.tokenizer`` names.

    Raises
    ------
    InputError
        If there is no usable tokenizer.
    """
    from transformers import AutoTokenizer

    place = config.tokenizer or str(source.folder)
    extra = {} if config.tokenizer or source.gguf_file is None else {"gguf_file": source.gguf_file}
    try:
        with quiet():
            return AutoTokenizer.from_pretrained(
                place, trust_remote_code=config.trust_remote_code, **extra
            )
    except Exception as error:
        raise InputError(
            f"The tokenizer of {config.tokenizer or source.given} cannot be loaded: "
            f"{_first_line(error)}.",
            hint="Set tokenizer to a folder or hub id that has one.",
        ) from error


def load_model(config: Config) -> LoadedModel:
    """Load base model, adapter and tokenizer.

    Everything is frozen but the LoRA tensors of the adapter; the model is in eval mode, so
    dropout is off. Without ``config.adapter_path`` the bare base model is given.

    Raises
    ------
    InputError
        If base model or adapter is missing, damaged, incomplete or does not fit the other, or if
        the adapter was never trained (all ``lora_B`` are zero).
    CannotRunError
        If the device is not there or its memory does not suffice.
    """
    device = resolve_device(config.device)
    source = resolve_base(config.base_model)
    info = read_adapter(find_adapter(config.adapter_path)) if config.adapter_path else None
    tokenizer = load_tokenizer(config, source)
    notes = [] if source.gguf_file is None else [_GGUF_NOTE]
    with _memory_errors(device):
        model = _load_base(config, source, device)
        if info is not None:
            notes += _compare_bases(info, source)
            notes += _check_adapter_config(info)
            model = _attach(model, info, source)
            if config.dtype == "float64":
                # PEFT leaves adapter weights in float32
                model = model.double()
        model = model.to(device)
    model.eval()
    model.requires_grad_(requires_grad=False)
    adapter = None
    if info is not None:
        adapter = str(model.active_adapter)
        tensors = attributable_parameters(find_sites(model, adapter))
        _refuse_untrained(tensors, info)
        for tensor in tensors.values():
            tensor.requires_grad_(requires_grad=True)
    return LoadedModel(
        model=model, tokenizer=tokenizer, device=device, adapter=adapter, notes=tuple(notes)
    )


def _load_base(config: Config, source: BaseSource, device: torch.device) -> Any:
    from transformers import AutoModelForCausalLM

    dtype = resolve_dtype(config.dtype, device)
    try:
        with quiet():
            model, found = AutoModelForCausalLM.from_pretrained(
                str(source.folder),
                dtype="auto" if dtype is None else dtype,
                attn_implementation=config.attn_implementation,
                trust_remote_code=config.trust_remote_code,
                output_loading_info=True,
                **_gguf_arguments(source),
            )
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"base_model: {config.base_model} cannot be loaded as a causal language model: "
            f"{_first_line(error)}.",
            hint="Is the download complete, and does this version of transformers know the model?",
        ) from error
    _refuse_incomplete(found, config.base_model)
    if getattr(model, "is_quantized", False):
        raise InputError(
            f"base_model: {config.base_model} is quantised.",
            hint="Give the unquantised model: gradients need its real weights.",
        )
    return model


def _gguf_arguments(source: BaseSource) -> dict[str, Any]:
    if source.gguf_file is None:
        return {}
    import transformers

    arguments: dict[str, Any] = {"gguf_file": source.gguf_file}
    # Since 5.24 transformers leaves the weights in their blocks where it finds a kernel for them;
    # before, it always unpacked them.
    if hasattr(transformers, "GgufConfig"):
        arguments["quantization_config"] = transformers.GgufConfig(dequantize=True)
    return arguments


def _refuse_incomplete(found: dict[str, Any], given: str) -> None:
    """Stop if transformers filled in weights that the checkpoint lacks: it uses random ones."""
    missing = sorted(str(name) for name in found["missing_keys"])
    if missing:
        raise InputError(
            f"base_model: {given} lacks {len(missing)} of the model's tensors "
            f"({', '.join(missing[:3])}).",
            hint="Fetch the whole checkpoint; if it is split, all of its parts.",
        )


def _check_adapter_config(info: AdapterInfo) -> list[str]:
    """Let PEFT read the config alone, so that its faults are not taken for a base that differs."""
    import peft

    try:
        with quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config = peft.PeftConfig.from_pretrained(str(info.path))
    except Exception as error:
        raise InputError(
            f"{info.path / 'adapter_config.json'} is refused by peft {peft.__version__}: "
            f"{_first_line(error)}.",
            hint="Correct it to what the training used, or use the peft that wrote it.",
        ) from error
    unknown = sorted(key for key in info.raw if not hasattr(config, key))
    note = (
        f"adapter_config.json has settings that peft {peft.__version__} does not know and "
        f"ignores: {excerpt(', '.join(unknown), 200)}. If one of them changes what the adapter "
        "computes, upgrade peft."
    )
    return [note] if unknown else []


def _attach(model: Any, info: AdapterInfo, source: BaseSource) -> Any:
    from peft import PeftModel

    stored = _stored_weights(info)
    caught: list[warnings.WarningMessage] = []
    try:
        with quiet(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tuned = PeftModel.from_pretrained(model, str(info.path), is_trainable=False)
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"adapter: {info.path} does not fit the base model {source.given}: "
            f"{_first_line(error)}.",
            hint=_which_base(info),
        ) from error
    for warning in caught:
        text = str(warning.message)
        # PEFT only warns here, and goes on with random or unused weights.
        told = _UNKNOWN_KEYS in text
        if "missing adapter keys" in text.lower() or ("unexpected" in text.lower() and not told):
            raise InputError(
                f"adapter: {info.path} does not fit the base model {source.given}: "
                f"{_first_line(text)}.",
                hint=_which_base(info),
            )
    _refuse_unused(tuned, stored, info, source)
    return tuned


def _stored_weights(info: AdapterInfo) -> dict[str, torch.Tensor]:
    from peft.utils.save_and_load import load_peft_weights

    try:
        weights: dict[str, torch.Tensor] = load_peft_weights(str(info.path), device="cpu")
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"adapter: the weights in {info.path} cannot be loaded: {_first_line(error)}.",
            hint="Copy or save the adapter again.",
        ) from error
    return weights


def _refuse_unused(
    model: Any, stored: dict[str, torch.Tensor], info: AdapterInfo, source: BaseSource
) -> None:
    """Stop if the file holds tensors that the model did not take, or lacks some that it has."""
    from peft import get_peft_model_state_dict

    with quiet():
        taken = get_peft_model_state_dict(model, save_embedding_layers=False)
    lora = {name for name in stored if "lora_" in name}
    wrong = sorted(lora ^ {name for name in taken if "lora_" in name})
    if wrong or not lora:
        shown = ", ".join(wrong[:3]) or "it holds no LoRA tensors"
        raise InputError(
            f"adapter: {info.path} does not fit the base model {source.given}: "
            f"{len(wrong)} tensors do not match ({shown}).",
            hint=_which_base(info),
        )
    bad = [name for name, tensor in stored.items() if not torch.isfinite(tensor).all()]
    if bad:
        raise InputError(
            f"adapter: {info.path} holds NaN or infinite weights ({bad[0]}, {len(bad)} in all).",
            hint="The training run diverged; no gradient of it means anything.",
        )


def _refuse_untrained(tensors: dict[str, Any], info: AdapterInfo) -> None:
    last = [t for name, t in tensors.items() if ".lora_B." in name or ".lora_embedding_B." in name]
    if last and not any(bool(tensor.detach().any()) for tensor in last):
        raise InputError(
            f"adapter: {info.path} was never trained: all of its lora_B matrices are zero.",
            hint="Base and tuned model are the same, so there is nothing to explain.",
        )


def _compare_bases(info: AdapterInfo, source: BaseSource) -> list[str]:
    if info.base_model is None:
        return []
    # the sentence goes into the report, where no path of a machine belongs
    wanted = Path(info.base_model)
    given = Path(source.name)
    if wanted.name.lower() in {given.name.lower(), given.stem.lower()}:
        return []
    named = wanted.name if wanted.is_absolute() else info.base_model
    return [f"The adapter says that its base model is {named}; {given} was used as told."]


def _which_base(info: AdapterInfo) -> str | None:
    return f"It was trained on {info.base_model}." if info.base_model else None


def _first_line(error: object) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines[:2]) if lines else type(error).__name__
    return (text[:300] + "…" if len(text) > 300 else text).rstrip(".,:; ")


@contextmanager
def _memory_errors(device: torch.device) -> Iterator[None]:
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise CannotRunError(
            f"The model does not fit into the memory of {device}.",
            hint="Use dtype: bfloat16, or another device.",
        ) from error
