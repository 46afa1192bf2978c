"""Bootstrap and gate against scipy and against exact enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from gradian_core.config.models import EvaluationSection
from gradian_core.errors import InputError
from gradian_core.evaluation import bootstrap
from gradian_core.evaluation.bootstrap import paired_bootstrap
from gradian_core.evaluation.gate import gate

SETTINGS = EvaluationSection()
scores = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12)


def interval(differences, **settings):
    settings = {"n_bootstrap": 2000, "ci_level": 0.95, "seed": 0} | settings
    return paired_bootstrap(np.asarray(differences, dtype=float), **settings)


def enumerated(differences, level):
    """Percentile interval over all n**n resamples."""
    n = len(differences)
    means = [sum(draw) / n for draw in itertools.product(differences, repeat=n)]
    return np.quantile(means, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize(
    "differences", [[0, -1, 0, -1, 1, 0], [0.1, -0.7, 0.3, 0.2, -0.05], [-1, -1, 0]]
)
def test_approaches_exact_enumeration(differences, level):
    found = interval(differences, n_bootstrap=200_000, ci_level=level)
    np.testing.assert_allclose(found, enumerated(differences, level), atol=0.01)


@pytest.mark.parametrize("n", [8, 40, 300])
def test_agrees_with_scipy(n):
    rng = np.random.default_rng(n)
    base, tuned = rng.random((2, n))
    wanted = scipy.stats.bootstrap(
        (tuned, base),
        lambda a, b, axis: (a - b).mean(axis=axis),
        paired=True,
        method="percentile",
        n_resamples=20_000,
        rng=1,
    ).confidence_interval
    found = interval(tuned - base, n_bootstrap=20_000)
    np.testing.assert_allclose(found, [wanted.low, wanted.high], atol=0.03 * (tuned - base).std())


def test_memory_is_bounded_and_changes_nothing(monkeypatch):
    differences = np.random.default_rng(0).normal(size=37)
    whole = interval(differences)
    monkeypatch.setattr(bootstrap, "CHUNK", 37 * 7)
    assert interval(differences) == whole
    monkeypatch.setattr(bootstrap, "CHUNK", 1)
    assert interval(differences) == whole


def test_the_seed_decides():
    differences = np.random.default_rng(0).normal(size=20)
    assert interval(differences, seed=3) == interval(differences, seed=3)
    assert interval(differences, seed=3) != interval(differences, seed=4)


def test_rounding_errors_do_not_clear_zero():
    differences = np.full(30, 0.1 + 0.2 - 0.3)
    differences[0] = -0.5
    assert differences[1] > 0
    low, high = interval(differences)
    assert low < 0.0
    assert high == 0.0


def test_false_alarms_stay_near_the_level():
    """The specification has .047 at 16 items and 20 % churn, by exact enumeration."""
    rng = np.random.default_rng(0)
    flags = [
        gate([0.0] * 16, churn, SETTINGS, seed=i).verdict != "not significant"
        for i, churn in enumerate(rng.choice([-1.0, 0.0, 1.0], p=[0.2, 0.6, 0.2], size=(600, 16)))
    ]
    assert np.mean(flags) == pytest.approx(0.047, abs=4 * (0.047 / 600) ** 0.5)


@pytest.mark.parametrize(("losses", "gains", "called"), [(3, 0, False), (4, 0, True)])
def test_losses_needed_to_call_a_regression(losses, gains, called):
    tuned = [0.0] * losses + [1.0] * (32 - losses)
    outcome = gate([1.0] * 32, tuned, SETTINGS, seed=1234)
    assert (outcome.verdict == "regressed") == called
    assert (outcome.worse, outcome.better) == (losses, gains)


def test_the_documented_example():
    base = [1.0] * 15 + [0.0]
    tuned = [0.0] * 8 + [1.0] * 7 + [0.0]
    outcome = gate(base, tuned, SETTINGS, seed=1234)
    assert (outcome.base, outcome.tuned, outcome.delta) == (0.9375, 0.4375, -0.5)
    assert (outcome.ci_low, outcome.ci_high) == pytest.approx((-0.75, -0.25), abs=0.0626)
    assert outcome.verdict == "regressed"
    assert outcome.reason == "The 95% interval of the change excludes zero."
    turned = gate(tuned, base, SETTINGS, seed=1234)
    assert turned.verdict == "improved"


def test_nothing_changed():
    outcome = gate([0.0, 1.0, 1.0], [0.0, 1.0, 1.0], SETTINGS, seed=0)
    assert (outcome.delta, outcome.ci_low, outcome.ci_high) == (0.0, 0.0, 0.0)
    assert outcome.verdict == "not significant"
    assert outcome.reason.startswith("No item changed")


@pytest.mark.parametrize(("base", "tuned"), [(1.0, 0.0), (0.0, 1.0)])
def test_one_item_is_never_enough(base, tuned):
    outcome = gate([base], [tuned], SETTINGS, seed=0)
    assert outcome.verdict == "not significant"
    assert outcome.ci_low <= 0.0 <= outcome.ci_high
    assert "one eval item only" in outcome.reason


def test_no_item_is_an_error_for_people():
    with pytest.raises(InputError, match="no eval item"):
        gate([], [], SETTINGS, seed=0)


def test_scores_must_be_paired():
    with pytest.raises(ValueError, match="not paired"):
        gate([1.0], [1.0, 0.0], SETTINGS, seed=0)


@given(scores)
def test_verdict_and_interval_agree(pairs):
    base, tuned = zip(*pairs, strict=True)
    outcome = gate(base, tuned, EvaluationSection(n_bootstrap=200), seed=0)
    assert outcome.ci_low <= outcome.ci_high
    assert (outcome.verdict == "regressed") == (outcome.ci_high < 0)
    assert (outcome.verdict == "improved") == (outcome.ci_low > 0)
    differences = np.subtract(tuned, base)
    slack = 1e-12
    assert min(differences.min(), 0) - slack <= outcome.ci_low
    assert outcome.ci_high <= max(differences.max(), 0) + slack
    assert outcome.delta == pytest.approx(outcome.tuned - outcome.base, abs=1e-12)


def test_the_level_is_written_as_it_is():
    outcome = gate([1.0, 0.0], [0.0, 1.0], EvaluationSection(ci_level=0.975), seed=0)
    assert "97.5% interval" in outcome.reason
