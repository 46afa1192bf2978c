"""``config.small_effective_batch``."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._rates import rates
from gradian_checks._read import count, flag, short
from gradian_checks._steps import effective_batch
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

_SMALL = 4
_CALM = 5e-5


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {
        "training": samples.training(
            learning_rate=5e-4, per_device_train_batch_size=1, gradient_accumulation_steps=1
        ),
        "adapter": samples.adapter(r=16, lora_alpha=32),
    },
    clean=lambda: {
        "training": samples.training(
            learning_rate=5e-4, per_device_train_batch_size=2, gradient_accumulation_steps=4
        ),
        "adapter": samples.adapter(r=16, lora_alpha=32),
    },
)
def small_effective_batch(
    training: TrainingConfig, adapter: AdapterInfo | None = None, log: LogFacts | None = None
) -> Iterator[Finding]:
    """Effective batch size of 1-2 with a high LR.

    Why it matters: a step that follows one example goes where that example points. At a high
    rate the steps do not average out.

    How to fix: ``gradient_accumulation_steps: 8`` costs no memory.

    Threshold: 1 with ``lr * sqrt(alpha / 32)`` above 5e-5 medium; up to 4 low. Devices count, and
    are worked out from the logged throughput where they are not recorded. Packed sequences hold
    several rows each, so a packed batch above 1 is not small. Small batches as such are good for
    LoRA (*LoRA Without Regret*); what hurts is a small one at a high rate.

    Not assessed: where the batch size is not known.
    """
    batch = effective_batch(training, log)
    if batch is None:
        raise NotAssessed("The batch size is not recorded.")
    packed = flag(training, "packing") is True
    if batch.size > (1 if packed else _SMALL):
        return
    try:
        rate = rates(training, adapter, log)
    except NotAssessed:
        rate = None
    hot = rate is not None and rate.independent > _CALM
    severity = Severity.MEDIUM if batch.size == 1 and hot and not packed else Severity.LOW
    passes = (count(training, "gradient_accumulation_steps") or 1) * max(8 // batch.size, 2)
    at = f" with lr={short(rate.peak.value)}" if rate is not None else ""
    yield Finding(
        id="config.small_effective_batch",
        severity=severity,
        title=f"Effective batch size {batch.size}{at} makes noisy steps",
        detail=f"It is {batch.parts}.",
        fix=f"Set gradient_accumulation_steps: {passes}, or halve the learning rate.",
        evidence={
            "effective_batch": batch.size,
            "parts": batch.parts,
            "lower_bound": batch.lower_bound,
            "packing": packed,
            "rank_independent": None if rate is None else rate.independent,
        },
    )
