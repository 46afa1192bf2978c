"""The gate: whether the change of a capability is more than noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradian_core.config.models import EvaluationSection
from gradian_core.errors import InputError
from gradian_core.evaluation.bootstrap import paired_bootstrap

__all__ = ["IMPROVED", "NOT_SIGNIFICANT", "REGRESSED", "GateResult", "gate"]

REGRESSED = "regressed"
IMPROVED = "improved"
NOT_SIGNIFICANT = "not significant"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """What the gate decided, and from what.

    Parameters
    ----------
    base, tuned, delta
        Mean scores, and tuned minus base.
    ci_low, ci_high, ci_level
        Interval of the delta.
    verdict
        ``regressed``, ``improved`` or ``not significant``.
    worse, better
        Number of items that lost and gained.
    reason
        Why it is this verdict, as a sentence.
    """

    base: float
    tuned: float
    delta: float
    ci_low: float
    ci_high: float
    ci_level: float
    verdict: str
    worse: int
    better: int
    reason: str


def gate(
    base_scores: Sequence[float],
    tuned_scores: Sequence[float],
    settings: EvaluationSection,
    *,
    seed: int,
) -> GateResult:
    """Judge paired scores: regressed or improved only if the interval of the delta excludes zero.

    Parameters
    ----------
    base_scores, tuned_scores
        ``(n,)`` finite scores of the same items in the same order.
    settings
        ``n_bootstrap`` and ``ci_level``.
    seed
        Seeds the resampling.

    Raises
    ------
    InputError
        If there is no item.
    """
    base = np.asarray(base_scores, dtype=np.float64)
    tuned = np.asarray(tuned_scores, dtype=np.float64)
    if base.shape != tuned.shape or base.ndim != 1:
        raise ValueError(f"scores are not paired: shapes {base.shape} and {tuned.shape}")
    if not len(base):
        raise InputError("There is no eval item, so no change can be measured.")
    differences = tuned - base
    low, high = paired_bootstrap(
        differences, n_bootstrap=settings.n_bootstrap, ci_level=settings.ci_level, seed=seed
    )
    if len(differences) == 1:
        # resampling one item repeats it, and the interval would have no width
        low, high = min(low, 0.0), max(high, 0.0)
    verdict = REGRESSED if high < 0.0 else IMPROVED if low > 0.0 else NOT_SIGNIFICANT
    return GateResult(
        base=float(base.mean()),
        tuned=float(tuned.mean()),
        delta=float(differences.mean()),
        ci_low=low,
        ci_high=high,
        ci_level=settings.ci_level,
        verdict=verdict,
        worse=int((differences < 0).sum()),
        better=int((differences > 0).sum()),
        reason=_reason(differences, verdict, settings.ci_level),
    )


def _reason(differences: NDArray[np.float64], verdict: str, level: float) -> str:
    if not differences.any():
        return f"No item changed: all {len(differences)} score alike under both models."
    if len(differences) == 1:
        return (
            "There is one eval item only: it shows no spread, so no change can be told from noise."
        )
    if verdict == NOT_SIGNIFICANT:
        return f"The {level * 100:g}% interval of the change includes zero."
    return f"The {level * 100:g}% interval of the change excludes zero."
