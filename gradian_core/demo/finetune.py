"""A plain LoRA fine-tune in PyTorch and PEFT, for the demo and for tests.

It writes the run folder that a transformers trainer would leave behind, so that the rest of
Gradian cannot tell the demo from a real run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

__all__ = ["encode_rows", "finetune"]

Encoded = tuple[list[int], list[int]]
IGNORE = -100
TARGET_MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def finetune(
    model_dir: str | Path,
    rows: Sequence[Mapping[str, Any]],
    out_dir: str | Path,
    *,
    seed: int = 0,
    epochs: int = 6,
    lr: float = 4e-3,
    r: int = 8,
    alpha: int = 16,
    batch_size: int = 8,
    warmup_ratio: float = 0.1,
    max_grad_norm: float = 1.0,
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
        Run folder; gets ``adapter/`` and ``trainer_state.json``.
    seed
        Seeds the adapter's initial weights and the order of the rows.
    epochs, lr, r, alpha, batch_size, warmup_ratio, max_grad_norm
        Settings of the fine-tune. The learning rate rises over the warm-up and then falls
        linearly to zero.
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

    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    base = str(model_dir)
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    encoded = encode_rows(tokenizer, rows)
    pad_id = tokenizer.pad_token_id

    # The caller's own random state stays as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_pretrained(base, local_files_only=True).float()
        config = LoraConfig(
            task_type="CAUSAL_LM",
            r=r,
            lora_alpha=alpha,
            lora_dropout=0.0,
            target_modules=TARGET_MODULES,
        )
        model = get_peft_model(model, config)
        # PEFT notes the path that transformers loaded from; keep the caller's spelling of it.
        model.peft_config["default"].base_model_name_or_path = base
        model.train()
        orders = [torch.randperm(len(encoded)).tolist() for _ in range(epochs)]

    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=0.0)
    steps_per_epoch = math.ceil(len(encoded) / batch_size)
    max_steps = steps_per_epoch * epochs
    warmup = math.ceil(max_steps * warmup_ratio)
    history: list[dict[str, float | int]] = []
    for step in range(max_steps):
        epoch, start = step // steps_per_epoch, step % steps_per_epoch * batch_size
        batch = [encoded[i] for i in orders[epoch][start : start + batch_size]]
        rate = lr * _linear(step, warmup, max_steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        input_ids, labels = _collate(batch, pad_id)
        # Rows are padded on the right, where causal attention and the loss never look.
        loss = model(input_ids=input_ids, labels=labels).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters, max_grad_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        value = loss.item()
        history.append(
            {
                "epoch": round((step + 1) / steps_per_epoch, 6),
                "grad_norm": norm.item(),
                "learning_rate": rate,
                "loss": value,
                "step": step + 1,
            }
        )
        if progress is not None:
            progress(step + 1, max_steps, value)
        if save_checkpoints and (step + 1) % steps_per_epoch == 0:
            checkpoint = out / f"checkpoint-{step + 1}"
            model.save_pretrained(checkpoint)
            _write_state(checkpoint, history, max_steps, epochs, batch_size)

    model.save_pretrained(out / "adapter")
    _write_state(out, history, max_steps, epochs, batch_size)
    return out


def encode_rows(
    tokenizer: PreTrainedTokenizerBase, rows: Sequence[Mapping[str, Any]]
) -> list[Encoded]:
    """Tokenise rows with their chat template.

    Parameters
    ----------
    tokenizer
        A fast tokenizer with a chat template whose rendering of a conversation starts with the
        rendering of its beginning (ChatML does).
    rows
        ``{"prompt", "completion"}`` or ``{"messages"}``.

    Returns
    -------
    list of tuple
        Token ids and labels of each row. Labels are the ids of the assistant's text and of its
        end-of-turn token, and -100 elsewhere.
    """
    end_of_turn = str(tokenizer.eos_token)
    encoded = []
    for row in rows:
        messages = row.get("messages") or [
            {"role": "user", "content": row["prompt"]},
            {"role": "assistant", "content": row["completion"]},
        ]
        text = tokenizer.apply_chat_template(messages, tokenize=False)
        spans = []
        for i, message in enumerate(messages):
            if message["role"] == "assistant":
                before = tokenizer.apply_chat_template(
                    messages[:i], tokenize=False, add_generation_prompt=True
                )
                start = len(before)
                # The content may spell the end-of-turn token itself, so look behind it.
                stop = text.index(end_of_turn, start + len(message["content"])) + len(end_of_turn)
                spans.append((start, stop))
        tokens = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        ids = tokens["input_ids"]
        labels = [
            token if any(start <= a and b <= stop for start, stop in spans) else IGNORE
            for token, (a, b) in zip(ids, tokens["offset_mapping"], strict=True)
        ]
        encoded.append((ids, labels))
    return encoded


def _collate(batch: list[Encoded], pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    width = max(len(ids) for ids, _ in batch)
    input_ids = [ids + [pad_id] * (width - len(ids)) for ids, _ in batch]
    labels = [targets + [IGNORE] * (width - len(targets)) for _, targets in batch]
    return torch.tensor(input_ids), torch.tensor(labels)


def _linear(step: int, warmup: int, total: int) -> float:
    # As transformers' linear schedule, except that the first step already learns something.
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return max(0.0, (total - step) / max(1, total - warmup))


def _write_state(
    folder: Path,
    history: list[dict[str, float | int]],
    max_steps: int,
    epochs: int,
    batch_size: int,
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
        "logging_steps": 1,
        "max_steps": max_steps,
        "num_input_tokens_seen": 0,
        "num_train_epochs": epochs,
        "save_steps": 500,
        "stateful_callbacks": {},
        "total_flos": 0.0,
        "train_batch_size": batch_size,
        "trial_name": None,
        "trial_params": None,
    }
    (folder / "trainer_state.json").write_text(
        json.dumps(state, indent=2) + "\n", encoding="utf-8", newline="\n"
    )
