"""Bootstrap and gate against scipy and against exact enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gradian_core.config.models import EvaluationSection
from gradian_core.errors import InputError
from gradian_core.evaluation import bootstrap
from gradian_core.evaluation.bootstrap import paired_bootstrap
from gradian_core.evaluation.gate import gate
from gradian_core.evaluation.graded import sign_flip_p

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


def test_false_alarms_stay_below_the_level():
    """By exact enumeration the mid-p test has .034 at 16 items and 20 % churn."""
    rng = np.random.default_rng(0)
    flags = [
        right_or_wrong(churn, seed=i).verdict in {"regressed", "improved"}
        for i, churn in enumerate(rng.choice([-1.0, 0.0, 1.0], p=[0.2, 0.6, 0.2], size=(600, 16)))
    ]
    assert np.mean(flags) == pytest.approx(0.034, abs=4 * (0.034 / 600) ** 0.5)


def right_or_wrong(differences, seed=0, **settings):
    differences = np.asarray(differences)
    base = (differences < 0).astype(float)
    return gate(base, base + differences, EvaluationSection(**settings), seed=seed)


@pytest.mark.parametrize(
    ("losses", "gains", "verdict"),
    [
        (0, 0, "not significant"),
        (3, 0, "undecidable"),
        (4, 0, "undecidable"),
        (5, 0, "regressed"),
        (0, 5, "improved"),
        (6, 1, "not significant"),
        (7, 1, "regressed"),
        (9, 2, "regressed"),
    ],
)
def test_losses_needed_to_call_a_regression(losses, gains, verdict):
    outcome = right_or_wrong([-1.0] * losses + [1.0] * gains + [0.0] * (32 - losses - gains))
    assert outcome.verdict == verdict
    assert (outcome.worse, outcome.better) == (losses, gains)


def test_both_locks_have_to_open():
    """Six losses against one gain: the bootstrap clears zero, McNemar does not confirm it."""
    outcome = right_or_wrong([-1.0] * 6 + [1.0] + [0.0] * 25)
    if outcome.ci_high < 0.0:
        assert "does not confirm it" in outcome.reason
    assert outcome.p_value == pytest.approx(0.0703, abs=1e-4)
    assert outcome.verdict == "not significant"


def test_the_documented_example():
    base = [1.0] * 15 + [0.0]
    tuned = [0.0] * 8 + [1.0] * 7 + [0.0]
    outcome = gate(base, tuned, SETTINGS, seed=1234)
    assert (outcome.base, outcome.tuned, outcome.delta) == (0.9375, 0.4375, -0.5)
    assert (outcome.ci_low, outcome.ci_high) == pytest.approx((-0.75, -0.25), abs=0.0626)
    assert outcome.verdict == "regressed"
    assert outcome.reason.startswith("The 95% interval of the change excludes zero, and the mid-p")
    assert outcome.tango_low < outcome.delta < outcome.tango_high < 0
    assert outcome.detectable.startswith("16 eval items, 0 gained: 5 losses are needed;")
    assert "under about 38 points" in outcome.detectable
    turned = gate(tuned, base, SETTINGS, seed=1234)
    assert turned.verdict == "improved"


def test_nothing_changed_has_an_interval_all_the_same():
    outcome = right_or_wrong([0.0] * 16)
    assert outcome.verdict == "not significant"
    assert outcome.reason.startswith("No item changed")
    assert outcome.ci_method == "tango"
    assert outcome.ci_low < 0.0 < outcome.ci_high


def test_no_interval_is_without_width():
    outcome = right_or_wrong([-1.0] * 16)
    assert outcome.verdict == "regressed"
    assert outcome.ci_low == -1.0 < outcome.ci_high < -0.6


@pytest.mark.parametrize("n", [1, 2, 7])
def test_few_items_are_never_enough(n):
    for change in (-1.0, 0.0, 1.0):
        outcome = right_or_wrong([change] * n)
        assert outcome.verdict == "undecidable"
        assert "decide nothing; 8 are the least" in outcome.reason
    assert right_or_wrong([-1.0] * 8).verdict == "regressed"


def test_graded_scores_need_sixteen_items_and_two_locks():
    rng = np.random.default_rng(0)
    loss = rng.normal(-1.0, 0.3, size=16)
    zero = np.zeros(16)
    few = gate(zero[:15], loss[:15], SETTINGS, seed=0, graded=True)
    assert (few.verdict, "16 are the least" in few.reason) == ("undecidable", True)
    outcome = gate(zero, loss, SETTINGS, seed=0, graded=True)
    assert (outcome.verdict, outcome.ci_method, outcome.test) == ("regressed", "t", "sign-flip")
    assert outcome.tango_low is None
    wanted = scipy.stats.ttest_1samp(loss, 0.0).confidence_interval(0.95)
    np.testing.assert_allclose((outcome.ci_low, outcome.ci_high), wanted, rtol=1e-9)
    # scores between right and wrong are graded, whatever the caller says
    assert gate(zero, loss / 10 + 0.5, SETTINGS, seed=0).ci_method == "t"
    noise = gate(zero, rng.normal(size=16), SETTINGS, seed=0, graded=True)
    assert noise.verdict == "not significant"
    flat = gate(zero, zero, SETTINGS, seed=0, graded=True)
    assert (flat.verdict, flat.ci_method) == ("not significant", "none")


def test_sign_flips_are_those_of_exact_enumeration():
    differences = np.array([-0.9, -0.4, 0.2, -0.7, -0.1, 0.3, -0.8, -0.2])
    signs = np.array(list(itertools.product([-1, 1], repeat=8)))
    exact = np.mean(np.abs(signs @ differences) >= abs(differences.sum()) - 1e-12)
    found = sign_flip_p(differences, draws=100_000, seed=0)
    assert found == pytest.approx(exact, abs=0.005)


def test_false_alarms_of_graded_scores():
    rng = np.random.default_rng(1)
    drawn = rng.standard_t(3, size=(300, 16))
    called = [
        gate(np.zeros(16), row, EvaluationSection(n_bootstrap=400), seed=i, graded=True).verdict
        in {"regressed", "improved"}
        for i, row in enumerate(drawn)
    ]
    assert np.mean(called) <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


def test_no_item_is_an_error_for_people():
    with pytest.raises(InputError, match="no eval item"):
        gate([], [], SETTINGS, seed=0)


def test_scores_must_be_paired():
    with pytest.raises(ValueError, match="not paired"):
        gate([1.0], [1.0, 0.0], SETTINGS, seed=0)


@given(scores)
def test_a_call_needs_its_interval_and_its_test(pairs):
    base, tuned = zip(*pairs, strict=True)
    outcome = gate(base, tuned, EvaluationSection(n_bootstrap=200), seed=0)
    assert outcome.ci_low <= outcome.ci_high
    if outcome.verdict == "regressed":
        assert outcome.ci_high < 0
    if outcome.verdict == "improved":
        assert outcome.ci_low > 0
    if outcome.verdict in {"regressed", "improved"}:
        assert outcome.p_value <= 0.05
    assert outcome.delta == pytest.approx(outcome.tuned - outcome.base, abs=1e-12)


def test_the_level_is_written_as_it_is():
    outcome = right_or_wrong([-1.0, 1.0] * 8, ci_level=0.975)
    assert "97.5% interval" in outcome.reason


def test_a_level_that_the_resamples_cannot_show_is_refused():
    with pytest.raises(ValidationError, match="set n_bootstrap to 100000000"):
        EvaluationSection(ci_level=0.9999999, n_bootstrap=100)
    with pytest.raises(ValidationError, match=r"2\.5 resamples lie beyond each limit"):
        EvaluationSection(ci_level=0.95, n_bootstrap=100)
    assert EvaluationSection(ci_level=0.95, n_bootstrap=200).n_bootstrap == 200
