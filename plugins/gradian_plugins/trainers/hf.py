"""The hf trainer: ``transformers.Trainer`` on the tokens and loss mask of attribution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from gradian_core.config.models import TrainSection
from gradian_core.model.quiet import quiet
from gradian_core.protocols import TrainJob
from gradian_core.retraining.callback import GradianCallback
from gradian_core.runs.gradian_run import GRADIAN_RUN

from ._arguments import make_arguments
from ._model import fresh_adapter
from ._rows import PadRight, encode_rows
from ._seeding import own_random_state

__all__ = ["HfTrainer", "finish", "told"]


class HfTrainer:
    """Implements :class:`gradian_core.protocols.Trainer`."""

    def train(self, job: TrainJob) -> Path:
        """Train a LoRA adapter.

        Raises
        ------
        GradianError
            For a base model, rows or settings that cannot be used.
        """
        settings = TrainSection.model_validate(job.settings)
        with own_random_state(), quiet():
            model, tokenizer = fresh_adapter(job, settings)
            rows = encode_rows(job, tokenizer, settings.max_seq_length)
            pad = tokenizer.pad_token_id
            trainer = (Trainer if job.order is None else InOrder)(
                model=model,
                args=make_arguments(TrainingArguments, job, settings, len(rows)),
                train_dataset=rows,
                data_collator=PadRight(tokenizer.eos_token_id or 0 if pad is None else pad),
                processing_class=tokenizer,
                callbacks=told(job, {"max_seq_length": settings.max_seq_length}),
            )
            return finish(trainer, job)


class InOrder(Trainer):  # type: ignore[misc]  # transformers is untyped
    """Visits rows in the order of the data set."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        data = self.train_dataset if train_dataset is None else train_dataset
        return torch.utils.data.SequentialSampler(data)


def told(job: TrainJob, settings: dict[str, Any]) -> list[TrainerCallback]:
    """Return the callbacks that record a job's run and show how far it is.

    Parameters
    ----------
    job
        The job.
    settings
        What the trainer's arguments do not tell, by normalised name.
    """
    record = GradianCallback(job.out / GRADIAN_RUN, settings=settings, base_model=job.base_model)
    return [record, _Reporter(job)]


def finish(trainer: Any, job: TrainJob) -> Path:
    """Train, and write the adapter and the trainer's state."""
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    trainer.save_state()
    trainer.model.save_pretrained(job.out / "adapter")
    return job.out


class _Reporter(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Tells the job's owner how far training is."""

    def __init__(self, job: TrainJob) -> None:
        self._job = job

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        loss = state.log_history[-1].get("loss") if state.log_history else None
        if self._job.progress is not None and loss is not None:
            self._job.progress(state.global_step, state.max_steps, float(loss))
