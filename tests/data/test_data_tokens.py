"""Taking some rows out of tokenised ones."""

from __future__ import annotations

import numpy as np
import pytest

from gradian_core.data.tokens import TokenizedRows


@pytest.fixture
def rows():
    lengths = np.array([3, 0, 2, 4])
    n = int(lengths.sum())
    return TokenizedRows(
        ids=("a", "b", "c", "d"),
        rows=np.arange(4),
        input_ids=np.arange(n, dtype=np.int32),
        supervised=np.arange(n) % 2 == 1,
        offsets=np.concatenate(([0], np.cumsum(lengths))),
        full_lengths=lengths.astype(np.int32),
        full_supervised=np.array([1, 0, 1, 2], dtype=np.int32),
        supervision=np.zeros(4, dtype=np.uint8),
    )


@pytest.mark.parametrize("places", [[2, 0], [1], [3, 1, 0, 2], [0, 0], []])
def test_rows_taken_are_the_rows(rows, places):
    taken = rows.take(np.array(places, dtype=np.int64))
    assert taken.ids == tuple(rows.ids[place] for place in places)
    assert len(taken) == len(places)
    for new, old in enumerate(places):
        for ours, theirs in zip(taken.row(new), rows.row(old), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(taken.full_lengths, rows.full_lengths[places])
    np.testing.assert_array_equal(taken.supervised_counts, rows.supervised_counts[places])
