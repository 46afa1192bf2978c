"""Whether unlike engines blame the same rows: counted by hand, and the rules that are shipped."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from gradian_core.attribution.aggregate import AGGREGATIONS
from gradian_core.attribution.consensus import consensus, load_rules
from gradian_core.plugins.registry import load_registry

RULES = load_rules()


def noise(n=200, seeds=3):
    return [np.random.default_rng(seed).standard_normal(n) for seed in range(seeds)]


def test_overlaps_by_hand():
    n = 20
    one, two, three = (np.arange(n, dtype=float) for _ in range(3))
    # the two most harmful rows: {0, 1}, {0, 5}, {0, 7}
    two[[1, 5]] = two[[5, 1]]
    three[[1, 7]] = three[[7, 1]]
    found = consensus([one, two, three], RULES)
    assert found.k == 2
    assert {pair: a.overlap for pair, a in found.pairs.items()} == {
        (0, 1): 0.5,
        (0, 2): 0.5,
        (1, 2): 0.5,
    }
    assert found.overlap == 0.5
    assert found.chance == 0.1
    assert np.flatnonzero(found.accused).tolist() == [0]
    assert found.rank_sum[0] == 1.0
    assert found.rank_sum[1] == pytest.approx((2 + 6 + 8) / 3)


def test_a_common_culprit_is_concentrated_and_noise_is_diffuse():
    scores = noise()
    assert consensus(scores, RULES).verdict == "diffuse"
    for ranking in scores:
        ranking[:20] -= 10
    found = consensus(scores, RULES)
    assert (found.verdict, found.overlap) == ("concentrated", 1.0)
    assert np.flatnonzero(found.accused).tolist() == list(range(20))
    assert found.rank_sum[:20].max() < found.rank_sum[20:].min()


def test_half_a_culprit_is_open():
    scores = noise()
    for ranking, rows in zip(scores, ([0, 1, 2, 3], [0, 1, 2, 4], [0, 1, 2, 5]), strict=True):
        ranking[rows] -= 10
    found = consensus(scores, replace(RULES, top_share=0.05))
    assert found.k == 10
    assert found.verdict == ("diffuse" if found.overlap < RULES.diffuse else "undetermined")
    assert consensus(scores, replace(RULES, diffuse=0.0)).verdict == "undetermined"


def test_the_top_of_a_few_rows_proves_nothing():
    few = [np.arange(44.0)] * 3
    assert consensus(few, RULES).verdict == "undetermined"
    assert consensus([np.arange(50.0)] * 3, RULES).verdict == "concentrated"


def test_rankings_that_tell_nothing_accuse_nobody():
    found = consensus([np.zeros(100)] * 3, RULES)
    assert not found.accused.any()
    assert found.overlap == pytest.approx(found.chance)
    assert found.verdict == "diffuse"


def test_the_order_of_rows_is_no_matter():
    scores = noise()
    order = np.random.default_rng(9).permutation(200)
    one, two = consensus(scores, RULES), consensus([s[order] for s in scores], RULES)
    assert one.overlap == two.overlap
    np.testing.assert_array_equal(two.rank_sum, one.rank_sum[order])
    np.testing.assert_array_equal(two.accused, one.accused[order])


def test_one_ranking_is_no_consensus():
    with pytest.raises(ValueError, match="at least two"):
        consensus([np.arange(10.0)], RULES)


def test_the_shipped_rules_are_sound():
    assert 0 < RULES.diffuse < RULES.concentrated < 1
    registry = load_registry()
    for voter in RULES.voters:
        registry.create("engine", voter.engine, voter.options)
        assert voter.aggregation in AGGREGATIONS
    # unlike in at least two of point, query and form, each from each
    kinds = [
        (tuple(voter.options["alphas"]), voter.options["signal"], voter.options["form"])
        for voter in RULES.voters
    ]
    for one, two in combinations(kinds, 2):
        assert sum(a != b for a, b in zip(one, two, strict=True)) >= 2
