"""Agreement of rankings, against scipy and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from gradian_core.attribution.agreement import agreement, paired_ranks

# Few distinct values, so that there are ties.
PAIRS = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=3, max_size=40)


@given(PAIRS)
def test_spearman_is_scipys(pairs):
    a, b = np.array(pairs, dtype=np.float64).T
    found = agreement(a, b)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert found.spearman is None
    else:
        assert found.spearman == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)


@given(PAIRS, st.integers(1, 3))
def test_symmetric_and_bounded(pairs, k):
    a, b = np.array(pairs, dtype=np.float64).T
    one, two = agreement(a, b, k), agreement(b, a, k)
    assert one == two
    assert 0.0 <= one.overlap <= 1.0 + 1e-12


def test_most_harmful_means_lowest():
    a = np.array([-9.0, -8.0, 0.0, 1.0, 2.0, 9.0])
    b = np.array([-9.0, 5.0, -8.0, 1.0, 2.0, 9.0])
    found = agreement(a, b, k=2)
    assert (found.overlap, found.k, found.chance) == (0.5, 2, 2 / 6)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (4, 1), (100, 10), (57, 6)])
def test_the_default_is_the_top_decile(n, k):
    scores = np.arange(float(n))
    assert agreement(scores, scores).k == k
    assert agreement(scores, scores).overlap == 1.0


def test_ties_count_as_chance_not_as_agreement():
    flat = np.zeros(50)
    found = agreement(flat, flat, k=5)
    assert found.overlap == pytest.approx(found.chance) == 0.1
    assert found.spearman is None


@pytest.mark.parametrize("factor", [1.0, 1e-200, 3e-4, 1e200])
def test_multiples_are_one_computation(factor):
    a = np.random.default_rng(0).normal(size=12)
    assert not agreement(a, factor * a).independent
    assert agreement(a, -factor * a).independent
    assert agreement(a, a + 0.01 * np.arange(12)).independent


def test_the_same_order_of_many_rows_is_no_coincidence():
    a = np.arange(30.0)
    assert not agreement(a, a**3).independent
    assert agreement(a[:4], a[:4] ** 3).independent
    swapped = a**3
    swapped[[3, 4]] = swapped[[4, 3]]
    assert agreement(a, swapped).independent
    # what tells no rows apart is undefined, not the same
    assert agreement(np.zeros(30), np.zeros(30)).independent


def test_unrelated_rankings_overlap_by_chance():
    rng = np.random.default_rng(0)
    found = [agreement(rng.random(200), rng.random(200)) for _ in range(300)]
    # Hypergeometric: the standard error of the mean overlap is 0.005.
    assert np.mean([one.overlap for one in found]) == pytest.approx(0.1, abs=0.02)
    assert np.mean([one.spearman for one in found]) == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize(
    ("a", "b", "k"),
    [
        (np.zeros(3), np.zeros(4), None),
        (np.zeros(0), np.zeros(0), None),
        (np.zeros((2, 2)), np.zeros((2, 2)), None),
        (np.array([1.0, np.nan]), np.zeros(2), None),
        (np.zeros(3), np.zeros(3), 0),
        (np.zeros(3), np.zeros(3), 4),
    ],
)
def test_nonsense_is_refused(a, b, k):
    with pytest.raises(ValueError, match=r"rankings|finite|between"):
        agreement(a, b, k)


@given(PAIRS)
def test_paired_ranks_are_those_of_the_two_rankings(pairs):
    a, b = np.array(pairs, dtype=np.float64).T
    found = paired_ranks(a, b, most=7)
    assert len(found) == min(7, len(a))
    order_a, order_b = np.argsort(a, kind="stable"), np.argsort(b, kind="stable")
    for ours, theirs in found:
        assert order_a[ours - 1] == order_b[theirs - 1]
    assert found[0][0] == 1
    assert found[-1][0] == len(a)
