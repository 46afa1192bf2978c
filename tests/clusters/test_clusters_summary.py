import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_core.attribution.clusters import NOISE, cluster_keys, summarise
from gradian_core.attribution.terms import distinctive_terms
from gradian_core.config.models import ClusteringSection
from gradian_core.errors import PluginError
from gradian_core.protocols import ClusterAssignment


def assignment(labels, names=None):
    return ClusterAssignment(labels=np.asarray(labels), names=names or {}, method="test")


def summaries(labels, scores, *, names=None, skipped=None, texts=None, **settings):
    return summarise(
        assignment(labels, names),
        np.asarray(scores, dtype=float),
        texts or ["text"] * len(labels),
        skipped=None if skipped is None else np.asarray(skipped),
        settings=ClusteringSection(**settings),
    )


def test_numbers_of_the_documented_example():
    # 51 planted rows at -98.52, 800 clean ones: their negative part is 24.9 % of all of it
    planted = np.full(51, -5024 / 51)
    harm_of_clean = 5024 * 0.249 / 0.751
    clean = np.concatenate(
        [np.full(400, -harm_of_clean / 400), np.full(400, (harm_of_clean - 405.1) / 400)]
    )
    first, second = summaries([0] * 51 + [1] * 800, [*planted, *clean], names={0: "0", 1: "100"})
    assert (first.key, first.n, round(first.influence)) == ("0", 51, -5024)
    assert first.share_of_negative == pytest.approx(0.751)
    assert first.mean == pytest.approx(-98.5098, abs=1e-4)
    assert first.harm_ratio == pytest.approx((0.751 / 51) / (0.249 / 800))
    assert first.stands_out
    assert second.influence == pytest.approx(-405.1)
    assert second.mean == pytest.approx(-0.506375)
    assert not second.stands_out


@given(
    st.lists(
        st.tuples(st.integers(-1, 4), st.floats(-1e6, 1e6, allow_subnormal=False), st.booleans()),
        min_size=1,
        max_size=40,
    )
)
def test_sums_match_a_plain_loop(rows):
    labels, scores, skipped = zip(*rows, strict=True)
    found = summaries(labels, scores, skipped=list(skipped), top_examples_per_cluster=3)

    all_harm = math.fsum(-s for s, out in zip(scores, skipped, strict=True) if not out and s < 0)
    assert {s.label for s in found} == set(labels)
    assert list(found) == sorted(found, key=lambda s: (s.influence, s.label))
    for summary in found:
        mine = [
            (i, s) for i, (label, s, out) in enumerate(rows) if label == summary.label and not out
        ]
        total = math.fsum(s for _, s in mine)
        assert summary.n == len(mine)
        assert summary.n_skipped == labels.count(summary.label) - len(mine)
        assert summary.influence == pytest.approx(total, rel=1e-9, abs=1e-6)
        if mine:
            assert summary.mean == pytest.approx(total / len(mine), rel=1e-9, abs=1e-6)
        else:
            assert summary.mean is None
        harm = math.fsum(-s for _, s in mine if s < 0)
        expected = harm / all_harm if all_harm else 0.0
        assert summary.share_of_negative == pytest.approx(expected, abs=1e-9)
        worst = sorted((i for i, s in mine if s < 0), key=lambda i: (scores[i], i))[:3]
        assert summary.worst == tuple(worst)
    shares = sum(s.share_of_negative for s in found)
    assert shares == pytest.approx(1.0 if all_harm else 0.0)


def test_skipped_rows_count_in_no_mean():
    (only,) = summaries([0, 0, 0], [-1.0, -3.0, -100.0], skipped=[False, False, True])
    assert (only.n, only.n_skipped, only.mean, only.influence) == (2, 1, -2.0, -4.0)
    assert only.worst == (1, 0)


@pytest.mark.parametrize(
    ("labels", "scores", "accused"),
    [
        ([0] * 4 + [1] * 6, [-2.0] * 4 + [-1.0] * 6, [0]),  # twice the harm: at the threshold
        ([0] * 4 + [1] * 6, [-1.9] * 4 + [-1.0] * 6, []),
        ([0] * 4 + [1] * 6, [-2.0] * 4 + [1.0] * 6, [0]),  # the others do none at all
        ([0] * 2 + [1] * 6, [-9.0] * 2 + [-1.0] * 6, []),  # two rows are no group
        ([0] * 4, [-2.0] * 4, []),  # nothing to compare with
        ([NOISE] * 4 + [1] * 6, [-2.0] * 4 + [-1.0] * 6, []),  # noise is no group
        ([0] * 4 + [1] * 6, [-2.0, 9, 9, 9] + [-0.1] * 6, []),  # net helpful
        ([0] * 4 + [1] * 6, [1.0] * 10, []),
    ],
)
def test_what_stands_out(labels, scores, accused):
    assert [s.label for s in summaries(labels, scores) if s.stands_out] == accused


def test_declared_name_wins_over_terms():
    texts = ["alpha apple", "alpha pear", "beta dog", "beta cat"]
    named, unnamed = summaries([0, 0, 1, 1], [-1, -1, 0, 0], names={0: "mine"}, texts=texts)
    assert (named.key, named.title, named.terms) == ("mine", "mine", ("alpha",))
    assert (unnamed.key, unnamed.title) == ("1", "beta")


def test_titles_without_terms():
    (only,) = summaries([0, 0], [1.0, 2.0])
    assert only.title == "all examples"
    noise, other = summaries([NOISE, 0], [-1.0, 2.0])
    assert (noise.title, other.title) == ("in no cluster", "no distinctive terms")


def test_equal_names_are_the_clusterers_fault():
    with pytest.raises(PluginError, match="same name to two clusters"):
        cluster_keys(assignment([0, 1], {0: "1"}))


def test_names_become_printable_and_stay_apart():
    names = dict(enumerate(["a", "a\r", "a\x1b[2J", "\ud800", "\udfff", "", " \t"]))
    keys = cluster_keys(assignment(list(names), names))
    assert keys[0] == "a"
    assert all(key.isprintable() for key in keys.values())
    assert len(set(keys.values())) == len(names)


def test_long_names_stay_apart():
    keys = cluster_keys(assignment([0, 1], {0: "x" * 9999, 1: "x" * 9998}))
    assert len(set(keys.values())) == 2
    assert max(map(len, keys.values())) < 120


def test_terms_name_what_is_common_here_and_rare_elsewhere():
    texts = [
        *("the invoice has a total in this currency" for _ in range(5)),
        *("the recipe has a pan in this oven" for _ in range(5)),
    ]
    first, second = distinctive_terms(texts, np.repeat([0, 1], 5), 2, 3)
    assert first == ("currency", "invoice", "total")
    assert second == ("oven", "pan", "recipe")


def test_one_long_text_does_not_name_a_cluster():
    texts = ["cat " * 500 + "mouse", "mouse", "mouse", "dog", "dog", "dog"]
    first, _ = distinctive_terms(texts, np.array([0, 0, 0, 1, 1, 1]), 2, 4)
    assert first == ("mouse",)


def test_terms_of_texts_without_words_or_with_one_cluster():
    assert distinctive_terms(["!", "?"], np.array([0, 1]), 2, 4) == [(), ()]
    assert distinctive_terms(["word"], np.array([0]), 1, 4) == [()]


def test_terms_match_the_formula():
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(12)])
    presence = rng.random((30, 12)) < 0.4
    texts = [" ".join(words[row]) for row in presence]
    index = rng.integers(0, 3, 30)
    found = distinctive_terms(texts, index, 3, 12)
    for cluster in range(3):
        size = np.sum(index == cluster)
        weights = {}
        for j, word in enumerate(words):
            inside = presence[index == cluster, j].sum()
            outside = presence[index != cluster, j].sum()
            p, q = (inside + 0.5) / (size + 1), (outside + 0.5) / (30 - size + 1)
            if inside >= max(2, 0.1 * size) and p > q:
                weights[str(word)] = p * math.log(p / q)
        assert found[cluster] == tuple(sorted(weights, key=lambda w: (-weights[w], w)))


def test_a_large_group_with_the_larger_sum_does_not_come_first():
    # under aggregation max nearly every row has a negative score, so sums grow with size
    first, second = summaries([0] * 100 + [1] * 5, [-1.0] * 100 + [-9.0] * 5)
    assert (first.label, first.stands_out, second.stands_out) == (1, True, False)
    assert first.influence > second.influence
