import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gradian_core.report.training_log import series


def none_bad(values):
    return np.zeros(len(values), dtype=bool)


def test_a_short_log_is_kept_as_it_is():
    values = np.array([3.0, np.nan, 2.0, np.nan])
    bad = np.array([False, False, False, True])
    found = series("loss", np.arange(4.0), values, bad)
    assert found.step == (0.0, 2.0, 3.0)
    assert found.value == (3.0, 2.0, None)
    assert found.n_logged == 3


def test_nothing_logged():
    assert series("loss", np.arange(3.0), np.full(3, np.nan), none_bad([0] * 3)) is None


def test_spikes_and_what_is_not_finite_survive():
    values = np.ones(10_000)
    values[[4321, 4330]] = 99.0, -5.0
    values[7777] = np.nan
    bad = np.isnan(values)
    found = series("loss", np.arange(10_000.0), values, bad)
    kept = dict(zip(found.step, found.value, strict=True))
    assert (kept[4321.0], kept[4330.0], kept[7777.0]) == (99.0, -5.0, None)
    assert found.n_logged == 10_000


@given(arrays.arrays(np.float64, st.integers(1, 2000), elements=st.floats(-1e6, 1e6)))
def test_at_most_200_in_order_with_both_extremes(values):
    found = series("loss", np.arange(len(values), dtype=float), values, none_bad(values))
    assert len(found.step) == len(found.value) <= 200
    assert list(found.step) == sorted(set(found.step))
    assert min(found.value) == values.min()
    assert max(found.value) == values.max()
    assert all(values[int(s)] == v for s, v in zip(found.step, found.value, strict=True))
