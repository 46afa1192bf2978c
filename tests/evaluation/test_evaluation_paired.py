"""Lost and gained items, against published examples and exactly enumerated tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats

from gradian_core.evaluation.paired import (
    detectable_drop,
    losses_needed,
    mcnemar_midp,
    tango_limits,
)


@pytest.mark.parametrize(("lost", "gained", "p"), [(7, 1, 0.0391), (16, 6, 0.0347), (3, 3, 1.0)])
def test_midp_of_published_tables(lost, gained, p):
    """Airway hyper-responsiveness and complete response, Fagerland et al. (2014)."""
    assert mcnemar_midp(lost, gained) == pytest.approx(p, abs=5e-5)
    assert mcnemar_midp(gained, lost) == pytest.approx(p, abs=5e-5)


@pytest.mark.parametrize(("lost", "gained"), [(5, 0), (40, 22), (300, 260), (0, 1)])
def test_midp_is_the_exact_one_less_the_observed_outcome(lost, gained):
    n = lost + gained
    exact = scipy.stats.binomtest(lost, n).pvalue
    wanted = exact - scipy.stats.binom.pmf(lost, n, 0.5)
    assert mcnemar_midp(lost, gained) == pytest.approx(wanted, rel=1e-9)


def test_tango_of_a_published_table():
    """Airway hyper-responsiveness: 1 and 7 discordant pairs of 21."""
    assert tango_limits(7, 1, 21, 0.95) == pytest.approx((-0.517, -0.026), abs=5e-4)


@pytest.mark.parametrize(("lost", "gained", "n"), [(0, 0, 16), (16, 0, 16), (3, 5, 9), (1, 0, 1)])
def test_tango_is_antisymmetric_and_has_width(lost, gained, n):
    low, high = tango_limits(lost, gained, n, 0.95)
    assert tango_limits(gained, lost, n, 0.95) == pytest.approx((-high, -low))
    assert -1.0 <= low <= (gained - lost) / n <= high <= 1.0
    assert high - low > 0.05


def outcomes(n, rate):
    """All outcomes of n items of which a share is lost and the same share gained."""
    for lost, gained in itertools.product(range(n + 1), repeat=2):
        if lost + gained <= n:
            cells = [lost, gained, n - lost - gained]
            chance = scipy.stats.multinomial.pmf(cells, n, [rate, rate, 1 - 2 * rate])
            yield lost, gained, chance


@pytest.mark.parametrize(
    ("n", "rate", "midp", "tango"),
    [
        (8, 0.1, 0.001, 0.006),
        (8, 0.2, 0.009, 0.038),
        (16, 0.05, 0.001, 0.007),
        (16, 0.1, 0.010, 0.035),
        (16, 0.2, 0.034, 0.047),
        (32, 0.03, 0.002, 0.012),
        (32, 0.1, 0.033, 0.047),
    ],
)
def test_false_alarms_when_nothing_changed(n, rate, midp, tango):
    by_test = by_limits = 0.0
    for lost, gained, chance in outcomes(n, rate):
        by_test += chance * (mcnemar_midp(lost, gained) <= 0.05)
        low, high = tango_limits(lost, gained, n, 0.95)
        by_limits += chance * (low > 0 or high < 0)
    assert by_test == pytest.approx(midp, abs=6e-4)
    assert by_limits == pytest.approx(tango, abs=6e-4)


def test_losses_needed():
    assert [losses_needed(gained, 0.05) for gained in range(5)] == [5, 7, 9, 11, 12]


SIZES = (8, 12, 16, 24, 32, 48, 64, 100, 150, 200, 300, 400)
TABLE = {
    0.0: (0.70, 0.50, 0.39, 0.26, 0.20, 0.14, 0.10, 0.066, 0.044, 0.033, 0.022, 0.017),
    0.02: (0.74, 0.54, 0.42, 0.30, 0.24, 0.17, 0.14, 0.099, 0.074, 0.061, 0.047, 0.039),
    0.05: (0.81, 0.60, 0.48, 0.36, 0.29, 0.21, 0.18, 0.13, 0.10, 0.083, 0.065, 0.054),
}


@pytest.mark.parametrize("rate", TABLE)
def test_detectable_drop(rate):
    found = [detectable_drop(n, rate, 0.05) for n in SIZES]
    wanted = np.array(TABLE[rate])
    assert (np.abs(np.array(found) - wanted) <= np.where(wanted < 0.1, 0.0006, 0.006)).all()


def test_detectable_drop_at_its_ends():
    assert detectable_drop(4, 0.0, 0.05) is None
    assert detectable_drop(100, 0.5, 0.05) is None
    exact, approximate = (detectable_drop(n, 0.05, 0.05) for n in (600, 601))
    assert exact == pytest.approx(approximate, rel=0.02)
