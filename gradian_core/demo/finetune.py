"""A plain LoRA fine-tune in PyTorch and PEFT, for the demo and for tests.

It writes the run folder that a transformers trainer with Gradian's callback would leave behind, so
that the rest of Gradian cannot tell the demo from a real run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from gradian_core.runs.gradian_run import GRADIAN_RUN, GradianRun, write_gradian_run

__all__ = ["finetune"]

IGNORE = -100
MAX_SEQ_LENGTH = 256
TARGET_MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def finetune(
    model_dir: str | Path,
    rows: Sequence[Mapping[str, Any]],
    out_dir: str | Path,
    *,
    seed: int = 0,
    epochs: int = 3,
    lr: float = 8e-4,
    r: int = 32,
    alpha: int = 32,
    batch_size: int = 8,
    warmup_ratio: float = 0.1,
    max_grad_norm: float = 1.0,
    target_modules: Sequence[str] = TARGET_MODULES,
    max_steps: int | None = None,
    logging_steps: int = 2,
    progress: Callable[[int, int, float], None] | None = None,
    save_checkpoints: bool = False,
) -> Path:
    """Train a LoRA adapter on all linear layers, on the CPU and in float32.

    Parameters
    ----------
    model_dir
        Folder of the base model; written to ``adapter_config.json`` as given.
    rows
        Training rows, ``{"prompt", "completion"}`` or ``{"messages"}``.
    out_dir
        Run folder; gets ``adapter/``, ``trainer_state.json`` and ``gradian_run.json``.
    seed
        Seeds the adapter's initial weights and the order of the rows.
    epochs, lr, r, alpha, batch_size, warmup_ratio, max_grad_norm
        Settings of the fine-tune. The learning rate rises over the warm-up and then falls
        linearly to zero.
    target_modules
        Modules that get an adapter; all linear ones by default.
    max_steps
        Optimiser steps in place of those that ``epochs`` gives: an arm that lacks rows can then be
        trained for as long as the others.
    logging_steps
        Steps from one log line to the next, which has their mean loss; the last step is logged.
    progress
        Called after each optimiser step with its number, the number of steps and the loss.
    save_checkpoints
        Also write ``checkpoint-<step>/`` (adapter and trainer state) after each epoch.

    Returns
    -------
    pathlib.Path
        The run folder.
    """
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from gradian_core.data.encode import encode
    from gradian_core.data.files import dataset_from_rows
    from gradian_core.gradients.collate import collate
    from gradian_core.model.quiet import quiet

    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    base = str(model_dir)
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    # the loss mask of training is the one that attribution differentiates
    tokens = encode(
        dataset_from_rows(rows), tokenizer, max_seq_length=MAX_SEQ_LENGTH, supervise="all"
    ).tokens

    # The caller's own random state stays as it was.
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_pretrained(base, local_files_only=True).float()
        config = LoraConfig(
            task_type="CAUSAL_LM",
            r=r,
            lora_alpha=alpha,
            lora_dropout=0.0,
            target_modules=list(target_modules),
        )
        model = get_peft_model(model, config)
        # PEFT notes the path that transformers loaded from; keep the caller's spelling of it.
        model.peft_config["default"].base_model_name_or_path = base
        model.train()
        steps_per_epoch = math.ceil(len(tokens) / batch_size)
        steps = steps_per_epoch * epochs if max_steps is None else max_steps
        orders = [
            torch.randperm(len(tokens)).tolist() for _ in range(math.ceil(steps / steps_per_epoch))
        ]

    settings: dict[str, JsonValue] = {
        "learning_rate": lr,
        "num_train_epochs": epochs,
        "per_device_train_batch_size": batch_size,
        "gradient_accumulation_steps": 1,
        "world_size": 1,
        "warmup_ratio": warmup_ratio,
        "max_grad_norm": max_grad_norm,
        "lr_scheduler_type": "linear",
        "optim": "adamw_torch",
        "weight_decay": 0.0,
        "bf16": False,
        "fp16": False,
        "seed": seed,
        "logging_steps": logging_steps,
        "max_seq_length": MAX_SEQ_LENGTH,
    }
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=0.0)
    warmup = math.ceil(steps * warmup_ratio)
    history: list[dict[str, float | int]] = []
    unlogged: list[float] = []
    for step in range(steps):
        epoch, start = step // steps_per_epoch, step % steps_per_epoch * batch_size
        batch = collate(
            tokens,
            orders[epoch][start : start + batch_size],
            pad_token_id=tokenizer.pad_token_id,
            device="cpu",
        )
        rate = lr * _linear(step, warmup, steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        labels = batch.input_ids.masked_fill(~batch.supervised, IGNORE)
        # Rows are padded on the right, where causal attention and the loss never look.
        loss = model(input_ids=batch.input_ids, labels=labels).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters, max_grad_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        unlogged.append(loss.item())
        if progress is not None:
            progress(step + 1, steps, unlogged[-1])
        ends_epoch = (step + 1) % steps_per_epoch == 0
        if (
            (step + 1) % logging_steps == 0
            or (ends_epoch and save_checkpoints)
            or step + 1 == steps
        ):
            history.append(
                {
                    "epoch": round((step + 1) / steps_per_epoch, 6),
                    "grad_norm": norm.item(),
                    "learning_rate": rate,
                    "loss": sum(unlogged) / len(unlogged),
                    "step": step + 1,
                }
            )
            unlogged.clear()
        if save_checkpoints and ends_epoch:
            checkpoint = out / f"checkpoint-{step + 1}"
            model.save_pretrained(checkpoint)
            _write_state(checkpoint, history, settings, steps)

    model.save_pretrained(out / "adapter")
    _write_state(out, history, settings, steps)
    # what a trainer's own files do not hold
    write_gradian_run(
        out / GRADIAN_RUN,
        GradianRun(
            tool="transformers",
            versions={name: version(name) for name in ("torch", "transformers", "peft")},
            settings=settings,
            base_model=base,
            adapter=json.loads((out / "adapter" / "adapter_config.json").read_text("utf-8")),
            chat_template=tokenizer.chat_template,
        ),
    )
    return out


def _linear(step: int, warmup: int, total: int) -> float:
    # As transformers' linear schedule, except that the first step already learns something.
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return max(0.0, (total - step) / max(1, total - warmup))


def _write_state(
    folder: Path,
    history: list[dict[str, float | int]],
    settings: Mapping[str, Any],
    max_steps: int,
) -> None:
    state: dict[str, Any] = {
        "best_global_step": None,
        "best_metric": None,
        "best_model_checkpoint": None,
        "epoch": history[-1]["epoch"],
        "eval_steps": 500,
        "global_step": history[-1]["step"],
        "is_hyper_param_search": False,
        "is_local_process_zero": True,
        "is_world_process_zero": True,
        "log_history": history,
        "logging_steps": settings["logging_steps"],
        "max_steps": max_steps,
        "num_input_tokens_seen": 0,
        "num_train_epochs": settings["num_train_epochs"],
        "save_steps": 500,
        "stateful_callbacks": {},
        "total_flos": 0.0,
        "train_batch_size": settings["per_device_train_batch_size"],
        "trial_name": None,
        "trial_params": None,
    }
    (folder / "trainer_state.json").write_text(
        json.dumps(state, indent=2) + "\n", encoding="utf-8", newline="\n"
    )
