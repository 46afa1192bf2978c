"""The base model with a fresh adapter."""

from __future__ import annotations

from typing import Any

import torch

from gradian_core.config.models import Config, TrainSection
from gradian_core.errors import InputError, MissingExtraError
from gradian_core.model.device import resolve_device
from gradian_core.model.load import load_model, load_tokenizer
from gradian_core.model.source import resolve_base
from gradian_core.protocols import TrainJob
from gradian_core.versions import importable

__all__ = ["fresh_adapter"]


def fresh_adapter(job: TrainJob, settings: TrainSection) -> tuple[Any, Any]:
    """Load the base model and put an untrained LoRA adapter on it.

    Parameters
    ----------
    job
        What to train; its seed decides the initial weights.
    settings
        Section ``train``.

    Returns
    -------
    model, tokenizer
        The PEFT model, on its device, and the base model's tokenizer.

    Raises
    ------
    InputError
        If the base model cannot be loaded, or the adapter does not fit it.
    MissingExtraError
        If four bits are asked for and bitsandbytes is not installed.
    """
    from peft import LoraConfig, get_peft_model

    model, tokenizer = _quantised(job) if settings.load_in_4bit else _plain(job)
    config = LoraConfig(
        task_type="CAUSAL_LM",
        r=settings.r,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        # PEFT's own choice for most models is attention only, which learns less
        target_modules=settings.target_modules or "all-linear",
    )
    torch.manual_seed(job.seed)
    try:
        tuned: Any = get_peft_model(model, config)
    except ValueError as error:
        raise InputError(
            f"train.target_modules: {settings.target_modules} does not fit the base model: "
            f"{str(error).splitlines()[0][:200]}",
            hint="Name modules of the model, such as q_proj, or leave it empty: all linear ones.",
        ) from error
    # PEFT notes the folder that transformers loaded from; keep the caller's spelling of it
    tuned.peft_config["default"].base_model_name_or_path = job.base_model
    return tuned, tokenizer


def _plain(job: TrainJob) -> tuple[Any, Any]:
    loaded = load_model(
        Config(
            base_model=job.base_model,
            device=job.device,
            dtype=job.dtype,
            trust_remote_code=job.trust_remote_code,
        )
    )
    return loaded.model, loaded.tokenizer


def _quantised(job: TrainJob) -> tuple[Any, Any]:
    if not importable("bitsandbytes"):
        raise MissingExtraError("train.load_in_4bit", ("bitsandbytes",), None)
    from peft import prepare_model_for_kbit_training
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    config = Config(base_model=job.base_model, trust_remote_code=job.trust_remote_code)
    source = resolve_base(job.base_model)
    model = AutoModelForCausalLM.from_pretrained(
        str(source.folder),
        quantization_config=BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=torch.bfloat16,
            bnb_4bit_use_double_quant=True,
        ),
        device_map={"": resolve_device(job.device)},
        trust_remote_code=job.trust_remote_code,
    )
    return prepare_model_for_kbit_training(model), load_tokenizer(config, source)
