"""``config.large_effective_batch``."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._lora import full_fine_tune
from gradian_checks._steps import effective_batch
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_LARGE = 64
_GOOD = 32


@check(
    severity=Severity.LOW,
    since="0.1",
    trips=lambda: {
        "training": samples.training(
            per_device_train_batch_size=16, gradient_accumulation_steps=8, world_size=1
        )
    },
    clean=lambda: {
        "training": samples.training(
            per_device_train_batch_size=8, gradient_accumulation_steps=4, world_size=1
        )
    },
)
def large_effective_batch(
    training: TrainingConfig, log: LogFacts | None = None
) -> Iterator[Finding]:
    """Effective batch size too large for LoRA.

    Why it matters: LoRA loses more from large batches than full fine-tuning does, at any rank,
    and each doubling halves the number of steps.

    How to fix: an effective batch of 16 to 32; accumulate less, or use fewer devices.

    Threshold: more than 64 rows a step (low). Source: *LoRA Without Regret*, where the loss grows
    above about 32.

    Not assessed: where the batch size is not known. Full fine-tuning is not judged.
    """
    if full_fine_tune(training):
        return
    batch = effective_batch(training, log)
    if batch is None:
        raise NotAssessed("The batch size is not recorded.")
    if batch.size <= _LARGE:
        return
    yield Finding(
        id="config.large_effective_batch",
        severity=Severity.LOW,
        title=f"Effective batch size {batch.size} is large for LoRA",
        detail=f"It is {batch.parts}. LoRA tolerates large batches less than full fine-tuning.",
        fix=f"Bring it down to {_GOOD} rows a step, which also makes "
        f"{batch.size / _GOOD:.1f} times as many steps.",
        evidence={"effective_batch": batch.size, "parts": batch.parts},
    )
