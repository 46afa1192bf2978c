"""Strength of a LoRA adapter, and the learning rate that it trains at."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gradian_checks._read import as_number, by_default, number, origin, text
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

__all__ = ["Lora", "PeakRate", "full_fine_tune", "lora", "peak_rate"]

_FULL = frozenset({"full", "freeze"})
_MOST = 1e6
"""No rate, rank or alpha is larger; what is has gone wrong on its way here."""


@dataclass(frozen=True, slots=True)
class Lora:
    """How strongly an adapter's update counts.

    Parameters
    ----------
    r, alpha
        As configured; alpha is the largest one where there are patterns.
    scaling
        ``alpha / r``, under rsLoRA ``alpha / sqrt(r)``; the largest one.
    rslora
        Whether it is rsLoRA.
    """

    r: int
    alpha: float
    scaling: float
    rslora: bool

    @property
    def formula(self) -> str:
        """The scaling as people write it."""
        return "alpha/sqrt(r)" if self.rslora else "alpha/r"


@dataclass(frozen=True, slots=True)
class PeakRate:
    """The highest learning rate of a run.

    Parameters
    ----------
    value
        The rate.
    source
        Where it was found.
    whole
        False where it is only the highest value of a log that may not have reached the peak.
    """

    value: float
    source: str
    whole: bool


def full_fine_tune(training: TrainingConfig | None) -> bool:
    """Whether the run trains the base model's own weights."""
    return text(training, "finetuning_type") in _FULL


def lora(adapter: AdapterInfo | None) -> Lora:
    """Return an adapter's strength.

    Raises
    ------
    NotAssessed
        If it is not a LoRA adapter, or its rank or alpha is not known.
    """
    if adapter is None:
        raise NotAssessed("The adapter's rank and alpha are not known.")
    if adapter.peft_type.upper() != "LORA":
        raise NotAssessed(f"Not a LoRA adapter: its method is {adapter.peft_type}.")
    r, alpha = adapter.r, adapter.lora_alpha
    if not _positive(r) or not _positive(alpha):
        raise NotAssessed("The adapter's rank and alpha are not recorded.")
    assert r is not None
    assert alpha is not None
    rslora = adapter.raw.get("use_rslora") is True
    ranks, alphas = (_pattern(adapter, key) for key in ("rank_pattern", "alpha_pattern"))
    pairs: list[tuple[float, float]] = [(r, alpha)]
    # a pattern in one table meets the plain value of the other, or the same module's pattern
    pairs += [(rank, alphas.get(module, alpha)) for module, rank in ranks.items()]
    pairs += [(ranks.get(module, r), value) for module, value in alphas.items()]
    root = math.sqrt if rslora else float
    return Lora(
        r=r,
        alpha=max(value for _, value in pairs),
        scaling=max(value / root(rank) for rank, value in pairs),
        rslora=rslora,
    )


def peak_rate(training: TrainingConfig, log: LogFacts | None) -> PeakRate:
    """Return the highest learning rate: the one asked for, or else the highest one logged.

    Raises
    ------
    NotAssessed
        If neither is known.
    """
    asked = number(training, "learning_rate")
    logged = np.array([]) if log is None else log.learning_rate[np.isfinite(log.learning_rate)]
    unset = asked is None or by_default(training, "learning_rate")
    if unset and len(logged) and 0 < logged.max() < _MOST:
        top = int(logged.argmax())
        # it fell from its peak, or it was steady: a schedule that still rises is not at its peak
        steady = len(logged) >= 3 and np.ptp(logged) <= 1e-9 * logged.max()
        whole = bool(steady or (len(logged) > top + 1 and logged[-1] < logged[top]))
        return PeakRate(float(logged.max()), "highest logged value", whole)
    if asked is None or not 0 < asked < _MOST:
        raise NotAssessed("No learning rate is recorded.")
    return PeakRate(asked, origin(training, "learning_rate"), whole=True)


def _pattern(adapter: AdapterInfo, key: str) -> dict[str, float]:
    table = adapter.raw.get(key)
    if not isinstance(table, Mapping):
        return {}
    return {str(module): float(value) for module, value in table.items() if _positive(value)}


def _positive(value: object) -> bool:
    made = as_number(value)
    return made is not None and 0 < made < _MOST
