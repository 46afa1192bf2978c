"""Batches: every row once, within both limits."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_core.gradients.batching import plan_batches

LENGTHS = st.lists(st.integers(1, 50), max_size=60)


@given(LENGTHS, st.integers(1, 8), st.integers(1, 120))
def test_every_row_once_and_limits_kept(lengths, max_rows, max_tokens):
    batches = plan_batches(lengths, max_rows, max_tokens)
    assert [row for batch in batches for row in range(batch.start, batch.stop)] == list(
        range(len(lengths))
    )
    for batch in batches:
        rows = lengths[batch]
        assert 1 <= len(rows) <= max_rows
        assert len(rows) == 1 or len(rows) * max(rows) <= max_tokens


@given(LENGTHS, st.integers(1, 8), st.integers(1, 120))
def test_no_batch_could_take_the_next_row(lengths, max_rows, max_tokens):
    batches = plan_batches(lengths, max_rows, max_tokens)
    for batch, following in itertools.pairwise(batches):
        rows = lengths[batch.start : following.start + 1]
        assert len(rows) > max_rows or len(rows) * max(rows) > max_tokens


def test_a_row_longer_than_the_limit_is_alone():
    assert plan_batches([90, 3, 3], 4, 10) == [slice(0, 1), slice(1, 3)]


@pytest.mark.parametrize(("rows", "tokens"), [(0, 5), (5, 0)])
def test_impossible_limits_are_refused(rows, tokens):
    with pytest.raises(ValueError, match="at least 1 row"):
        plan_batches([1], rows, tokens)
