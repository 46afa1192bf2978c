"""Whether a LoRA learning rate is too high, by two measures that must agree.

``lr * alpha / r`` is what people compute, and it misjudges both ends of the ranks: trl documents
r=256, alpha=16, lr=2e-4 and r=1, alpha=32, lr=5e-5, which it calls far too low and far too high.
``lr * sqrt(alpha / 32)`` does not depend on the rank. Where both agree they are right on every
documented recipe that was looked at, so a finding needs both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gradian_checks._lora import Lora, PeakRate, lora, peak_rate
from gradian_checks._names import billions
from gradian_checks._read import require_sft, short
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.findings import Severity
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

__all__ = ["Rates", "probably_too_high", "rates", "too_high"]

_BANDS = ((2e-3, Severity.CRITICAL), (1e-3, Severity.HIGH), (5e-4, Severity.LOW))
_INDEPENDENT = 3e-4
_LARGE = 30.0
_ROUNDING = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class Rates:
    """A LoRA run's learning rate in both measures."""

    peak: PeakRate
    lora: Lora
    large: bool

    @property
    def effective(self) -> float:
        """The rate times the adapter's scaling."""
        return self.peak.value * self.lora.scaling

    @property
    def independent(self) -> float:
        """The rate times ``sqrt(alpha / 32)``."""
        return self.peak.value * math.sqrt(self.lora.alpha / 32)

    @property
    def sum(self) -> str:
        """The multiplication as people check it."""
        factor = f"{self.lora.formula}={self.lora.scaling:g}"
        return f"lr={short(self.peak.value)} x {factor} = {short(self.effective)}"

    @property
    def evidence(self) -> dict[str, object]:
        """All that went into the judgement."""
        return {
            "learning_rate": self.peak.value,
            "source": self.peak.source,
            "r": self.lora.r,
            "lora_alpha": self.lora.alpha,
            "use_rslora": self.lora.rslora,
            "scaling": self.lora.scaling,
            "effective_learning_rate": self.effective,
            "rank_independent": self.independent,
        }


def rates(training: TrainingConfig, adapter: AdapterInfo | None, log: LogFacts | None) -> Rates:
    """Return the learning rate in both measures.

    Raises
    ------
    NotAssessed
        If the rate, the rank or alpha is unknown, or the run is not AdamW on a supervised task.
    """
    require_sft(training)
    strength = lora(adapter)
    peak = peak_rate(training, log)
    assert adapter is not None
    size = billions(adapter.base_model)
    return Rates(peak, strength, large=size is not None and size >= _LARGE)


def too_high(found: Rates) -> Severity | None:
    """Return how bad it is, None where at least one measure is content.

    Models of 30 billion parameters and more are trained at half the rate.
    """
    factor = 0.5 if found.large else 1.0
    if found.independent <= _INDEPENDENT * factor:
        return None
    for bound, severity in _BANDS:
        if found.effective >= bound * factor * _ROUNDING:
            return severity
    return None


def probably_too_high(
    training: TrainingConfig | None, adapter: AdapterInfo | None, log: LogFacts | None
) -> bool:
    """Whether ``config.lr_too_high`` finds something, for checks that look for a cause."""
    if training is None:
        return False
    try:
        return too_high(rates(training, adapter, log)) is not None
    except NotAssessed:
        return False
