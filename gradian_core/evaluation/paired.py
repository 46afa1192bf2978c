"""Statistics of items that two models get right or wrong: lost, gained, unchanged.

Sources: mid-p McNemar test, Fagerland, Lydersen and Laake, BMC Med Res Methodol 13:91 (2013);
score limits of the difference, Tango, Statistics in Medicine 17:891 (1998).
"""

from __future__ import annotations

import functools
import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

__all__ = ["POWER", "detectable_drop", "losses_needed", "mcnemar_midp", "tango_limits"]

POWER = 0.8
"""Chance of showing a change that counts as usually showing it."""
_EXACT_UP_TO = 600
"""Items up to which the power is enumerated; beyond, the normal approximation is close."""


def mcnemar_midp(lost: int, gained: int) -> float:
    """Return the two-sided mid-p value of McNemar's test.

    Parameters
    ----------
    lost, gained
        Number of items that only the base model, or only the tuned model, gets right.
    """
    if lost == gained:
        return 1.0
    pmf = _halves(lost + gained)
    k = min(lost, gained)
    return float(min(1.0, 2.0 * pmf[:k].sum() + pmf[k]))


def tango_limits(lost: int, gained: int, n: int, level: float) -> tuple[float, float]:
    """Return Tango's score limits of the change ``(gained - lost) / n``.

    Parameters
    ----------
    lost, gained, n
        Items lost, gained, and all items.
    level
        Confidence level.
    """
    z = NormalDist().inv_cdf((1.0 + level) / 2.0)
    low = _crossing(lost, gained, n, z)
    return low, -_crossing(gained, lost, n, z)


def _crossing(lost: int, gained: int, n: int, z: float) -> float:
    """Smallest change that the score test does not reject, by bisection."""
    low, high = -1.0, (gained - lost) / n
    for _ in range(60):
        middle = (low + high) / 2.0
        if _score(lost, gained, n, middle) > z:
            low = middle
        else:
            high = middle
    return high


def _score(lost: int, gained: int, n: int, change: float) -> float:
    # the share of losses under the restriction is a root of A q^2 + B q + C
    a = 2.0 * n
    b = -gained - lost + (2.0 * n - gained + lost) * change
    c = -lost * change * (1.0 - change)
    share = (math.sqrt(max(b * b - 4.0 * a * c, 0.0)) - b) / (2.0 * a)
    variance = n * (2.0 * share + change * (1.0 - change))
    distance = gained - lost - n * change
    if variance <= 0.0:
        return math.inf if distance > 0.0 else 0.0
    return distance / math.sqrt(variance)


def losses_needed(gained: int, alpha: float) -> int:
    """Return the fewest losses beside so many gains that the mid-p test calls a regression."""
    lost = gained + 1
    while mcnemar_midp(lost, gained) > alpha:
        lost += 1
    return lost


def detectable_drop(n: int, gain_rate: float, alpha: float) -> float | None:
    """Return the smallest true drop that the mid-p test shows with a chance of :data:`POWER`.

    Parameters
    ----------
    n
        Number of items.
    gain_rate
        Share of items that the tuned model gains besides.
    alpha
        Level of the test.

    Returns
    -------
    float or None
        Net drop as a share of the items; None where not even the largest possible one is shown.
    """
    largest = 1.0 - 2.0 * gain_rate
    if largest <= 0.0 or _power(n, largest, gain_rate, alpha) < POWER:
        return None
    low, high = 0.0, largest
    for _ in range(20):
        middle = (low + high) / 2.0
        if _power(n, middle, gain_rate, alpha) < POWER:
            low = middle
        else:
            high = middle
    return high


def _power(n: int, drop: float, gain_rate: float, alpha: float) -> float:
    loss_rate = gain_rate + drop
    changed = loss_rate + gain_rate
    if n > _EXACT_UP_TO:
        normal = NormalDist()
        z = normal.inv_cdf(1.0 - alpha / 2.0)
        spread = math.sqrt(max(changed - drop * drop, 1e-12))
        return normal.cdf((drop * math.sqrt(n) - z * math.sqrt(changed)) / spread)
    return float(_binomial(n, changed) @ _called(n, loss_rate / changed, alpha))


def _called(n: int, share: float, alpha: float) -> NDArray[np.float64]:
    """Chance of a call for each number of changed items, each a loss with a chance ``share``."""
    found = np.zeros(n + 1)
    for changed, critical in enumerate(_critical(n, alpha)):
        if critical <= changed:
            found[changed] = _binomial(changed, share)[critical:].sum()
    return found


@functools.lru_cache(maxsize=8)
def _critical(n: int, alpha: float) -> tuple[int, ...]:
    """Fewest losses that are called for each number of changed items; one more where none are."""
    fewest = []
    for changed in range(n + 1):
        pmf = _halves(changed)
        # mid-p of k gains, falling with k
        tail = 2.0 * np.cumsum(pmf) - pmf
        gains = int(np.searchsorted(tail[: (changed + 1) // 2], alpha, side="right"))
        fewest.append(changed - gains + 1)
    return tuple(fewest)


def _halves(n: int) -> NDArray[np.float64]:
    return _binomial(n, 0.5)


def _binomial(n: int, p: float) -> NDArray[np.float64]:
    """Return the ``(n + 1,)`` probabilities of a binomial distribution."""
    if p <= 0.0 or p >= 1.0:
        sure = np.zeros(n + 1)
        sure[n if p >= 1.0 else 0] = 1.0
        return sure
    k = np.arange(n + 1)
    factorials = _log_factorials(n)
    logs = factorials[n] - factorials[k] - factorials[n - k]
    probabilities: NDArray[np.float64] = np.exp(logs + k * math.log(p) + (n - k) * math.log1p(-p))
    return probabilities


def _log_factorials(n: int) -> NDArray[np.float64]:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
