"""The gate: whether the change of a capability is more than noise.

A change is called only if two locks open: an interval of the mean difference that excludes zero,
and a test that does not share its weakness. The bootstrap alone calls one unchanged capability
in nine a change on 8 items, and needs no more than 4 losses (sign test: p = .125).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradian_core.config.models import EvaluationSection
from gradian_core.errors import InputError
from gradian_core.evaluation.bootstrap import paired_bootstrap
from gradian_core.evaluation.graded import detectable_shift, sign_flip_p, t_interval
from gradian_core.evaluation.paired import (
    POWER,
    detectable_drop,
    losses_needed,
    mcnemar_midp,
    tango_limits,
)

__all__ = [
    "IMPROVED",
    "MIN_CHANGED",
    "MIN_GRADED",
    "MIN_ITEMS",
    "NOT_SIGNIFICANT",
    "REGRESSED",
    "UNDECIDABLE",
    "GateResult",
    "gate",
]

REGRESSED = "regressed"
IMPROVED = "improved"
NOT_SIGNIFICANT = "not significant"
UNDECIDABLE = "undecidable"

MIN_ITEMS = 8
"""Fewer right-or-wrong items decide nothing."""
MIN_CHANGED = 5
"""Fewer changed items cannot be told from chance, whichever way they went."""
MIN_GRADED = 16
"""Fewer items with graded scores decide nothing: no interval keeps its level there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """What the gate decided, and from what.

    Parameters
    ----------
    base, tuned, delta
        Mean scores, and tuned minus base.
    ci_low, ci_high, ci_level
        Interval of the delta.
    ci_method
        ``bootstrap``; ``tango`` where all items changed alike, so that resampling shows no
        spread; ``t`` for graded scores; ``none`` where those show no spread.
    verdict
        ``regressed``, ``improved``, ``not significant`` or ``undecidable``.
    worse, better
        Number of items that lost and gained.
    reason
        Why it is this verdict, as a sentence.
    test, p_value
        The second lock: ``mid-p McNemar`` or ``sign-flip``.
    tango_low, tango_high
        Score limits of the delta; None for graded scores.
    detectable
        What so many items can show, as a sentence; empty where that is unknown.
    """

    base: float
    tuned: float
    delta: float
    ci_low: float
    ci_high: float
    ci_level: float
    ci_method: str
    verdict: str
    worse: int
    better: int
    reason: str
    test: str
    p_value: float
    tango_low: float | None
    tango_high: float | None
    detectable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    low: float
    high: float
    method: str
    test: str
    p_value: float
    tango: tuple[float, float] | None
    detectable: str
    too_few: str | None


def gate(
    base_scores: Sequence[float],
    tuned_scores: Sequence[float],
    settings: EvaluationSection,
    *,
    seed: int,
    graded: bool = False,
) -> GateResult:
    """Judge paired scores of distinct items.

    Parameters
    ----------
    base_scores, tuned_scores
        ``(n,)`` finite scores of the same items in the same order.
    settings
        ``n_bootstrap`` and ``ci_level``.
    seed
        Seeds the resampling.
    graded
        The scores are more than right (1) or wrong (0). Scores other than those are always
        treated so.

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
    binary = not graded and bool(np.isin(np.concatenate([base, tuned]), (0.0, 1.0)).all())
    found = (_right_or_wrong if binary else _graded)(differences, settings, seed)
    verdict, reason = _verdict(differences, found, settings.ci_level)
    return GateResult(
        base=float(base.mean()),
        tuned=float(tuned.mean()),
        delta=float(differences.mean()),
        ci_low=found.low,
        ci_high=found.high,
        ci_level=settings.ci_level,
        ci_method=found.method,
        verdict=verdict,
        worse=int((differences < 0).sum()),
        better=int((differences > 0).sum()),
        reason=reason,
        test=found.test,
        p_value=found.p_value,
        tango_low=None if found.tango is None else found.tango[0],
        tango_high=None if found.tango is None else found.tango[1],
        detectable=found.detectable,
    )


def _right_or_wrong(
    differences: NDArray[np.float64], settings: EvaluationSection, seed: int
) -> _Evidence:
    n = len(differences)
    lost, gained = int((differences < 0).sum()), int((differences > 0).sum())
    low, high = paired_bootstrap(
        differences, n_bootstrap=settings.n_bootstrap, ci_level=settings.ci_level, seed=seed
    )
    tango = tango_limits(lost, gained, n, settings.ci_level)
    method = "bootstrap"
    if low == high:
        (low, high), method = tango, "tango"
    few = None
    if n < MIN_ITEMS:
        few = f"{_items(n)} decide nothing; {MIN_ITEMS} are the least."
    elif 0 < lost + gained < MIN_CHANGED:
        few = (
            f"Only {lost + gained} of {n} items changed, and fewer than {MIN_CHANGED} cannot be "
            "told from chance."
        )
    return _Evidence(
        low=low,
        high=high,
        method=method,
        test="mid-p McNemar",
        p_value=mcnemar_midp(lost, gained),
        tango=tango,
        detectable=_what_shows(n, gained, 1.0 - settings.ci_level),
        too_few=few,
    )


def _graded(differences: NDArray[np.float64], settings: EvaluationSection, seed: int) -> _Evidence:
    n = len(differences)
    alpha = 1.0 - settings.ci_level
    mean = float(differences.mean())
    # a sum such as .1 + .2 - .3 is no spread
    spread = n > 1 and float(np.ptp(differences)) > 1e-12 * float(np.abs(differences).max())
    low, high = t_interval(differences, settings.ci_level) if spread else (mean, mean)
    detectable = ""
    if spread:
        shift = detectable_shift(differences, alpha, POWER)
        detectable = (
            f"With {_items(n)} of this spread, a true change under about {shift:.3g} would "
            "usually be missed."
        )
    return _Evidence(
        low=low,
        high=high,
        method="t" if spread else "none",
        test="sign-flip",
        p_value=sign_flip_p(differences, draws=settings.n_bootstrap, seed=seed),
        tango=None,
        detectable=detectable,
        too_few=f"{_items(n)} with graded scores decide nothing; {MIN_GRADED} are the least."
        if n < MIN_GRADED
        else None,
    )


def _verdict(differences: NDArray[np.float64], found: _Evidence, level: float) -> tuple[str, str]:
    share, alpha = f"{level * 100:g}%", 1.0 - level
    if found.too_few is not None:
        return UNDECIDABLE, found.too_few
    if not differences.any():
        return (
            NOT_SIGNIFICANT,
            f"No item changed: all {len(differences)} score alike under both models.",
        )
    if found.low <= 0.0 <= found.high:
        return NOT_SIGNIFICANT, f"The {share} interval of the change includes zero."
    if found.p_value > alpha:
        return NOT_SIGNIFICANT, (
            f"The {share} interval of the change excludes zero, but the {found.test} test does "
            f"not confirm it (p = {found.p_value:.3f}, above {alpha:.3g})."
        )
    verdict = REGRESSED if found.high < 0.0 else IMPROVED
    return verdict, (
        f"The {share} interval of the change excludes zero, and the {found.test} test confirms "
        f"it (p = {found.p_value:.2g})."
    )


def _what_shows(n: int, gained: int, alpha: float) -> str:
    needed = losses_needed(gained, alpha)
    start = f"{_items(n)}, {gained} gained: "
    if needed + gained > n:
        return f"{start}no number of losses would be called a regression."
    drop = detectable_drop(n, gained / n, alpha)
    if drop is None:
        return f"{start}{needed} losses are needed; a true drop would usually be missed."
    return (
        f"{start}{needed} losses are needed; a true drop under about {100 * drop:.2g} points "
        "would usually be missed."
    )


def _items(n: int) -> str:
    return "1 eval item" if n == 1 else f"{n} eval items"
