"""One score per row: against loops over items, and properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gradian_core.attribution.aggregate import AGGREGATIONS, aggregate
from gradian_core.errors import UsageError

matrices = arrays(
    np.float64, st.tuples(st.integers(1, 7), st.integers(1, 6)), elements=st.floats(-1e3, 1e3)
)


def by_hand(scores, how):
    """Row by row, in terms of harm."""
    totals = []
    for row in range(scores.shape[1]):
        harms = sorted((-float(score) for score in scores[:, row]), reverse=True)
        worst = {
            "mean": sum(harms) / len(harms),
            "max": harms[0],
            "top3": sum(harms[:3]) / len(harms[:3]),
            "relu": sum(max(0.0, harm) for harm in harms) / len(harms),
        }
        totals.append(-worst[how])
    return np.array(totals)


@pytest.mark.parametrize("how", AGGREGATIONS)
@given(matrices)
def test_by_hand(how, scores):
    np.testing.assert_allclose(aggregate(scores, how), by_hand(scores, how), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("how", AGGREGATIONS)
@given(matrices, st.randoms(use_true_random=False))
def test_order_of_items_and_unit_do_not_matter(how, scores, random):
    order = list(range(len(scores)))
    random.shuffle(order)
    one = aggregate(scores, how)
    np.testing.assert_allclose(aggregate(scores[order], how), one, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(aggregate(7 * scores, how), 7 * one, rtol=1e-9, atol=1e-9)


@given(matrices)
def test_from_the_worst_item_to_the_net_effect(scores):
    # no row is judged less harmful by its worst item than by the mean of several
    assert (aggregate(scores, "max") <= aggregate(scores, "top3") + 1e-9).all()
    assert (aggregate(scores, "top3") <= aggregate(scores, "mean") + 1e-9).all()
    assert (aggregate(scores, "relu") <= np.minimum(aggregate(scores, "mean"), 0) + 1e-9).all()


def test_harm_that_the_mean_hides():
    # row 0 hurts one item and helps three; row 1 does a little harm to all
    scores = np.array([[-3.0, -0.1], [1.5, -0.1], [1.5, -0.1], [1.5, -0.1]])
    assert aggregate(scores).argmin() == 1
    assert aggregate(scores, "max").argmin() == aggregate(scores, "relu").argmin() == 0


def test_names_that_are_none():
    with pytest.raises(UsageError, match="aggregation 'median'; use mean, max, top3, relu"):
        aggregate(np.zeros((1, 1)), "median")
