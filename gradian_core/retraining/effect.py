"""Is a cause proven? What leaving out the accused rows brought, beyond leaving out others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["ERRORS_NEEDED", "SHARE_NEEDED", "Effect", "Verdict", "measure_effect"]

Verdict = Literal["proven", "not proven", "not reproduced"]

ERRORS_NEEDED = 2.0
"""Standard errors that the effect must exceed."""
SHARE_NEEDED = 1 / 3
"""Share of what was lost that the effect must bring back."""

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What retraining showed.

    Parameters
    ----------
    lost
        Mean score of the base model minus that of the retrained full arm.
    effect
        Mean score without the accused rows minus that without as many random ones.
    standard_error
        Of the effect: seeds and random draws, and the sample of eval items.
    share
        Effect as a share of what was lost; None where nothing was.
    verdict
        ``proven`` iff the effect exceeds :data:`ERRORS_NEEDED` standard errors and brings back
        :data:`SHARE_NEEDED` of what was lost; ``not reproduced`` if retraining on all rows lost
        nothing to explain.
    """

    lost: float
    effect: float
    standard_error: float
    share: float | None
    verdict: Verdict


def measure_effect(base: Scores, full: Scores, accused: Scores, random: Scores) -> Effect:
    """Judge the arms.

    The standard error has two parts that add up: the scatter of retrainings (pooled over the
    arms; the seeds of an arm share nothing but the data) and that of eval items (the paired
    difference of an item's mean scores in both arms).

    Parameters
    ----------
    base
        ``(items,)`` scores of the base model.
    full, accused
        ``(seeds, items)`` scores after retraining on all rows, and without the accused.
    random
        ``(draws, seeds, items)`` scores without other rows of the same weight.

    Raises
    ------
    ValueError
        If shapes do not fit, or an arm has fewer than two retrainings: then nothing is known
        about their scatter.
    """
    draws, seeds, items = random.shape
    if full.shape != (seeds, items) or accused.shape != (seeds, items) or base.shape != (items,):
        raise ValueError("arms of unlike shape")
    if seeds < 2 or draws < 1:
        raise ValueError("an arm needs at least two seeds")
    groups = [full.mean(axis=1), accused.mean(axis=1), *random.mean(axis=2)]
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    variance = squares / sum(len(group) - 1 for group in groups)
    retrainings = variance * (1 / seeds + 1 / (draws * seeds))
    # another draw of rows is another retraining with a scatter of its own
    between = float(random.mean(axis=(1, 2)).var(ddof=1)) / draws if draws > 1 else 0.0
    paired = accused.mean(axis=0) - random.mean(axis=(0, 1))
    sampling = float(paired.var(ddof=1)) / items if items > 1 else math.inf
    error = math.sqrt(retrainings + between + sampling)

    lost = float(base.mean() - full.mean())
    effect = float(paired.mean())
    verdict: Verdict = "not proven"
    if lost <= 0:
        verdict = "not reproduced"
    elif effect > ERRORS_NEEDED * error and effect >= SHARE_NEEDED * lost:
        verdict = "proven"
    return Effect(
        lost=lost,
        effect=effect,
        standard_error=error,
        share=effect / lost if lost > 0 else None,
        verdict=verdict,
    )
