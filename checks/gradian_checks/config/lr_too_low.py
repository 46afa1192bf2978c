"""``config.lr_too_low``."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._lora import full_fine_tune, peak_rate
from gradian_checks._rates import rates
from gradian_checks._read import require_sft, short
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

_EFFECTIVE = 1e-5
_CONFIGURED = 2e-5
_BANDS = ((1e-6, Severity.HIGH), (5e-6, Severity.MEDIUM))
_GOOD = 1e-4
_FULL = 1e-6


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {
        "training": samples.training(learning_rate=2e-6),
        "adapter": samples.adapter(r=16, lora_alpha=16),
    },
    clean=lambda: {
        "training": samples.training(learning_rate=1e-5),
        "adapter": samples.adapter(r=8, lora_alpha=160),
    },
)
def lr_too_low(
    training: TrainingConfig, adapter: AdapterInfo | None = None, log: LogFacts | None = None
) -> Iterator[Finding]:
    """Learning rate too low to learn.

    Why it matters: an adapter starts from zero, and at a rate that would suit full fine-tuning it
    is still close to zero at the end. The model then looks as if the data had taught it nothing.

    How to fix: LoRA wants about ten times the rate of full fine-tuning: 1e-4 to 2e-4.

    Threshold: two measures must agree: the effective rate ``lr * alpha / r`` below 1e-5 and the
    configured rate below 2e-5. Severity by ``lr * sqrt(alpha / 32)``: low, medium below 5e-6, high
    below 1e-6. mlx-lm's default (1e-5 at scale 20) and trl's r=256, alpha=16, lr=2e-4 are clean.
    Full fine-tuning: low below 1e-6.

    Not assessed: for optimisers other than AdamW's family, for preference and reinforcement
    learning, where rate, rank or alpha is unknown, and where all that is known is a log that may
    have ended in its warmup.
    """
    if full_fine_tune(training):
        require_sft(training)
        peak = peak_rate(training, log)
        if peak.whole and peak.value < _FULL:
            yield Finding(
                id="config.lr_too_low",
                severity=Severity.LOW,
                title=f"Learning rate {short(peak.value)} is low for full fine-tuning",
                detail="Full fine-tuning mostly uses 1e-6 to 5e-5.",
                fix="Use learning_rate: 1e-5.",
                evidence={"learning_rate": peak.value, "source": peak.source},
            )
        return
    found = rates(training, adapter, log)
    if not (found.effective < _EFFECTIVE and found.peak.value < _CONFIGURED):
        return
    if not found.peak.whole:
        raise NotAssessed("The log may have ended before the learning rate reached its peak.")
    severity = next((s for bound, s in _BANDS if found.independent < bound), Severity.LOW)
    good = _GOOD * found.peak.value / found.independent
    yield Finding(
        id="config.lr_too_low",
        severity=severity,
        title=f"Effective LoRA learning rate is low: {found.sum}",
        detail=(
            f"The configured rate ({found.peak.source}) would suit full fine-tuning; LoRA wants "
            "about ten times as much."
        ),
        fix=f"Train again with learning_rate: {short(float(f'{good:.1g}'))}.",
        evidence=found.evidence,
    )
