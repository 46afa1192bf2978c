"""Section ``train`` as the arguments of a transformers trainer."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from gradian_core.config.models import TrainSection
from gradian_core.errors import UsageError
from gradian_core.model.device import resolve_device, resolve_dtype
from gradian_core.protocols import TrainJob
from gradian_core.retraining.settings import total_steps
from gradian_core.text import did_you_mean

__all__ = ["make_arguments"]

_OURS = frozenset({"output_dir", "seed", "data_seed", "report_to", "disable_tqdm"})
"""Arguments that ``train.extra`` cannot set: they are settled by the job."""


def make_arguments(kind: type[Any], job: TrainJob, settings: TrainSection, rows: int) -> Any:
    """Return a ``kind`` (``TrainingArguments`` or a subclass) for a job.

    Parameters
    ----------
    kind
        The class.
    job, settings
        The job and its section ``train``.
    rows
        Rows that are trained on; the warm-up is a share of their steps.

    Raises
    ------
    UsageError
        For a key of ``train.extra`` that the class does not have, or a value it refuses.
    """
    device = resolve_device(job.device)
    dtype = resolve_dtype(job.dtype, device)
    known = {field.name for field in dataclasses.fields(kind) if field.init}
    for key in settings.extra:
        if key not in known or key in _OURS:
            raise UsageError(
                f"train.extra: {key} is no argument that {kind.__name__} takes from there.",
                hint=did_you_mean(key, known - _OURS),
            )
    steps = int(settings.extra.get("max_steps", -1))
    if steps <= 0:
        steps = total_steps(rows, settings, epochs=None if job.order is None else 1)
    saving = settings.save_checkpoints
    arguments: dict[str, Any] = {
        "output_dir": str(job.out),
        "seed": job.seed,
        "data_seed": job.seed,
        "learning_rate": settings.learning_rate,
        # an order of its own is unrolled over all epochs
        "num_train_epochs": settings.num_train_epochs if job.order is None else 1,
        "per_device_train_batch_size": settings.per_device_train_batch_size,
        "gradient_accumulation_steps": settings.gradient_accumulation_steps,
        # a number of steps, since newer versions no longer take a ratio
        "warmup_steps": math.ceil(settings.warmup_ratio * steps),
        "lr_scheduler_type": settings.lr_scheduler_type,
        "logging_steps": settings.logging_steps,
        "logging_nan_inf_filter": False,
        "save_strategy": "no" if not saving else "steps" if settings.save_steps else "epoch",
        "save_steps": settings.save_steps or 500,
        "save_only_model": True,
        "max_grad_norm": settings.max_grad_norm,
        "weight_decay": settings.weight_decay,
        "use_cpu": device.type == "cpu",
        "bf16": device.type == "cuda" and str(dtype) != "torch.float32",
        "report_to": "none",
        "disable_tqdm": True,
        "remove_unused_columns": False,
    }
    try:
        return kind(**{**arguments, **settings.extra})
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"Section train does not make a {kind.__name__}: {str(error).splitlines()[0][:300]}.",
            hint="See lr_scheduler_type and extra.",
        ) from error
