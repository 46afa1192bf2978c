"""``config.lr_too_high``."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._lora import full_fine_tune, peak_rate
from gradian_checks._rates import rates, too_high
from gradian_checks._read import require_sft, short
from gradian_checks._trouble import broke_down
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

_GOOD = 2e-4
_FULL = 5e-5
_ORDER = (Severity.LOW, Severity.MEDIUM, Severity.HIGH, Severity.CRITICAL)


@check(
    severity=Severity.CRITICAL,
    since="0.1",
    trips=lambda: {
        "training": samples.training(learning_rate=2e-3),
        "adapter": samples.adapter(r=16, lora_alpha=32),
    },
    clean=lambda: {
        "training": samples.training(learning_rate=2e-4),
        "adapter": samples.adapter(r=256, lora_alpha=16),
    },
)
def lr_too_high(
    training: TrainingConfig, adapter: AdapterInfo | None = None, log: LogFacts | None = None
) -> Iterator[Finding]:
    """Learning rate too high for LoRA.

    Why it matters: LoRA multiplies its update by ``alpha / r`` (under rsLoRA by
    ``alpha / sqrt(r)``), so the rate in the config is not the rate that acts. Too high a rate
    overwrites what the base model could do long before the loss tells.

    How to fix: train again at the rate that the finding names; 1e-4 to 2e-4 is where most
    adapters with alpha 16 to 32 are trained.

    Threshold: two measures must agree. The effective rate ``lr * alpha / r`` is low from 5e-4,
    high from 1e-3, critical from 2e-3; and the rank-independent ``lr * sqrt(alpha / 32)`` is above
    3e-4. Models of 30 billion parameters and more: half of both (QLoRA used 2e-4 up to 13B, 1e-4
    above). One level more where the log shows that training came apart. Sources: trl's *LoRA
    Without Regret* and PEFT's method comparison, whose recipes stay clean. Full fine-tuning: low
    above 5e-5.

    Not assessed: for optimisers other than AdamW's family, for preference and reinforcement
    learning, and where rate, rank or alpha is unknown.
    """
    if full_fine_tune(training):
        require_sft(training)
        peak = peak_rate(training, log)
        if peak.value > _FULL:
            yield Finding(
                id="config.lr_too_high",
                severity=Severity.LOW,
                title=f"Learning rate {short(peak.value)} is high for full fine-tuning",
                detail="Full fine-tuning mostly uses 1e-6 to 5e-5; small models take more.",
                fix=f"Use learning_rate: {short(_FULL)} or less, or train a LoRA adapter.",
                evidence={"learning_rate": peak.value, "source": peak.source},
            )
        return
    found = rates(training, adapter, log)
    severity = too_high(found)
    if severity is None:
        return
    apart = broke_down(log)
    if apart:
        severity = _ORDER[min(_ORDER.index(severity) + 1, len(_ORDER) - 1)]
    good = _GOOD * (0.5 if found.large else 1.0) / (found.independent / found.peak.value)
    good = min(good, found.peak.value / 2)
    yield Finding(
        id="config.lr_too_high",
        severity=severity,
        title=f"Effective LoRA learning rate is high: {found.sum}",
        detail=(
            f"The adapter's update is multiplied by {found.lora.formula}, so {found.peak.source} "
            f"asks for more than it seems to. The measure that leaves the rank out, "
            f"lr x sqrt(alpha/32) = {short(found.independent)}, agrees."
            + (" The log shows that training came apart." if apart else "")
        ),
        fix=f"Train again with learning_rate: {short(float(f'{good:.1g}'))}.",
        evidence={**found.evidence, "came_apart": apart},
    )
