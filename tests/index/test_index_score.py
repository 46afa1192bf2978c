"""Scores: from the index to file order, against independent float64 formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gradian_core.attribution.point import Point, Queries
from gradian_core.attribution.score import score
from gradian_core.errors import UsageError
from gradian_core.index import blocks
from gradian_engines._datainf import DataInf, DataInfSettings
from gradian_engines._graddot import GradDot, GradDotSettings

SPANS = (slice(0, 72), slice(72, 144), slice(144, 156))


def graddot():
    return GradDot(GradDotSettings())


def datainf(**settings):
    return DataInf(DataInfSettings(**settings))


def single(array):
    """What the index holds of float64 gradients."""
    return array.astype(np.float32).astype(np.float64)


def brute_datainf(G, v, scale=0.1):
    """The paper's formula for one query, with loops over rows."""
    n = len(G)
    total = np.zeros(n)
    for span in SPANS:
        g, q = G[:, span], v[span]
        damping = scale * sum(float((row**2).mean()) for row in g) / n
        inner = sum((row @ q) / (damping + row @ row) * row for row in g)
        r = (q - inner / n) / damping
        total += np.array([r @ row for row in g])
    return total


def test_graddot_in_file_order(fakes, tokens, query_tokens, setting):
    index, queries = setting
    found = score(index, queries, graddot())
    V = queries.combination @ single(fakes.exact(query_tokens))
    expected = V @ single(fakes.exact(tokens)).T
    np.testing.assert_allclose(found.matrix, expected, rtol=1e-12, atol=1e-14)
    assert not found.matrix[:, [4, 19]].any()
    assert np.flatnonzero(~found.scored).tolist() == [4, 19]


def test_datainf_is_the_papers_formula_over_rows_with_a_gradient(
    fakes, tokens, query_tokens, setting
):
    index, queries = setting
    found = score(index, queries, datainf())
    G = single(fakes.exact(tokens))[found.scored]
    V = queries.combination @ single(fakes.exact(query_tokens))
    for query in range(3):
        np.testing.assert_allclose(
            found.matrix[query, found.scored], brute_datainf(G, V[query]), rtol=1e-11
        )


def test_a_contrast_is_a_difference_of_scores(setting):
    index, queries = setting
    parts = score(index, replace(queries, combination=np.eye(6)), datainf()).matrix
    together = score(index, queries, datainf()).matrix
    np.testing.assert_allclose(together, parts[::2] - parts[1::2], rtol=1e-9, atol=1e-12)


def test_a_row_without_gradient_changes_nobodys_score(fakes, tokens, setting, tmp_path):
    index, queries = setting
    keep = np.flatnonzero(tokens.supervised_counts > 0)
    spans = [np.arange(tokens.offsets[row], tokens.offsets[row + 1]) for row in keep]
    fewer = replace(
        tokens,
        ids=tuple(tokens.ids[row] for row in keep),
        rows=tokens.rows[keep],
        input_ids=tokens.input_ids[np.concatenate(spans)],
        supervised=tokens.supervised[np.concatenate(spans)],
        offsets=np.concatenate(([0], np.cumsum(tokens.lengths[keep]))),
        full_lengths=tokens.full_lengths[keep],
        full_supervised=tokens.full_supervised[keep],
        supervision=tokens.supervision[keep],
    )
    without = score(fakes.make_index(tmp_path / "fewer", fewer), queries, datainf())
    found = score(index, queries, datainf())
    np.testing.assert_array_equal(without.matrix, found.matrix[:, keep])
    np.testing.assert_array_equal(
        without.predicted_loss_delta_if_removed(), found.predicted_loss_delta_if_removed()[keep]
    )


@pytest.mark.parametrize("settings", [{"chunk_size": 3}, {"batch_size": 1}])
def test_shards_and_batches_do_not_change_scores(fakes, tokens, setting, tmp_path, settings):
    index, queries = setting
    other = fakes.make_index(tmp_path / "other", tokens, **settings)
    expected = score(index, queries, datainf()).matrix
    np.testing.assert_allclose(score(other, queries, datainf()).matrix, expected, rtol=1e-10)


def test_order_of_the_file_does_not_change_scores(fakes, setting, tmp_path):
    # Rows in reverse order in another file: the same scores, in reverse order.
    _, queries = setting
    tokens = fakes.make_tokens(9)
    spans = [np.arange(tokens.offsets[row], tokens.offsets[row + 1]) for row in range(9)][::-1]
    back = replace(
        tokens,
        ids=tokens.ids[::-1],
        input_ids=tokens.input_ids[np.concatenate(spans)],
        supervised=tokens.supervised[np.concatenate(spans)],
        offsets=np.concatenate(([0], np.cumsum(tokens.lengths[::-1]))),
    )
    one = score(fakes.make_index(tmp_path / "1", tokens), queries, datainf()).matrix
    two = score(fakes.make_index(tmp_path / "2", back), queries, datainf()).matrix
    np.testing.assert_allclose(two[:, ::-1], one, rtol=1e-10)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("normalization", ["none", "l2", "token_count"])
def test_settings_of_use_act_on_rows_and_queries(
    fakes, tokens, query_tokens, setting, reduction, normalization
):
    index, queries = setting
    G, Q = single(fakes.exact(tokens)), single(fakes.exact(query_tokens))
    counts = np.maximum(tokens.supervised_counts, 1)[:, None]
    if reduction == "sum":
        G, Q = G * counts, Q * query_tokens.supervised_counts[:, None]
    if normalization == "l2":
        G = G / np.maximum(np.linalg.norm(G, axis=1, keepdims=True), 1e-300)
    if normalization == "token_count":
        G = G / counts
    for engine in (graddot(), datainf()):
        found = score(index, queries, engine, loss_reduction=reduction, normalization=normalization)
        V = queries.combination @ Q
        if isinstance(engine, GradDot):
            expected = V @ G[found.scored].T
        else:
            expected = np.array([brute_datainf(G[found.scored], v) for v in V])
        np.testing.assert_allclose(
            found.matrix[:, found.scored], expected, rtol=1e-9, atol=1e-9 * abs(expected).max()
        )


def test_cosine_over_all_blocks(fakes, tokens, query_tokens, setting):
    index, queries = setting
    engine = GradDot(GradDotSettings(normalize_query=True))
    found = score(index, queries, engine, normalization="l2")
    V = queries.combination @ single(fakes.exact(query_tokens))
    G = single(fakes.exact(tokens))[found.scored]
    norms = np.linalg.norm(V, axis=1)[:, None] * np.linalg.norm(G, axis=1)
    np.testing.assert_allclose(found.matrix[:, found.scored], V @ G.T / norms, rtol=1e-10)
    point = Point(index, queries, normalization="l2")
    np.testing.assert_allclose(point.row_norms, 1.0, rtol=1e-12)
    np.testing.assert_allclose(point.context.query_norms, np.linalg.norm(V, axis=1), rtol=1e-12)


def test_the_sign_by_taking_the_step(fakes, tmp_path):
    """One small SGD step on an example lowers the query loss iff its score is positive."""
    tokens, query_tokens = fakes.make_tokens(60), fakes.make_tokens(1, seed=5)
    index = fakes.make_index(tmp_path / "t", tokens)
    queries = Queries(
        index=fakes.make_index(tmp_path / "q", query_tokens), combination=np.ones((1, 1))
    )
    scores = score(index, queries, graddot()).aggregate()
    gradients = fakes.exact(tokens)
    capture = fakes.BigramCapture()
    w, b = capture.w.numpy(), capture.b.numpy()
    before = fakes.mean_loss(query_tokens, 0, w, b)
    step = 1e-6
    for row in range(60):
        moved_w = w - step * gradients[row, :144].reshape(12, 12)
        moved_b = b - step * gradients[row, 144:]
        change = fakes.mean_loss(query_tokens, 0, moved_w, moved_b) - before
        assert change == pytest.approx(-step * scores[row], rel=1e-2, abs=1e-12)
    assert (scores > 1e-3).sum() > 5
    assert (scores < -1e-3).sum() > 5


def test_half_floats_rank_alike(fakes, tokens, query_tokens, setting, tmp_path):
    index, queries = setting
    halves = fakes.make_index(tmp_path / "half", tokens, spec={"storage_dtype": "float16"})
    one = score(index, queries, datainf()).aggregate()
    two = score(halves, queries, datainf()).aggregate()
    np.testing.assert_allclose(two, one, atol=2e-3 * np.abs(one).max())


def test_projected_scores_follow_the_exact_ones(fakes, tokens, query_tokens, setting, tmp_path):
    index, queries = setting
    exact = score(index, queries, graddot()).matrix
    found = []
    for seed in range(16):
        spec = {"projection_dim": 24, "projection_seed": seed}
        small = fakes.make_index(tmp_path / "t", tokens, spec=spec)
        rows = fakes.make_index(tmp_path / "q", query_tokens, spec=spec)
        found.append(score(small, replace(queries, index=rows), graddot()).matrix)
    errors = [np.linalg.norm(one - exact) / np.linalg.norm(exact) for one in found]
    # Unbiased: the mean over seeds comes closer than any one of them.
    error = np.linalg.norm(np.mean(found, axis=0) - exact) / np.linalg.norm(exact)
    assert error < min(0.15, *errors)


def test_damping_under_projection_is_that_of_the_exact_gradients(fakes, tokens, tmp_path):
    spec = {"projection_dim": 24}
    small = fakes.make_index(tmp_path / "t", tokens, spec=spec)
    block = small.block("upper")
    assert (block.dim, block.exact_dim) == (24, 72)
    damping = datainf()._damping(block)
    assert damping == pytest.approx(0.1 * small.squared_norms[:, 1].sum() / (23 * 72), rel=1e-12)


# --- memory and reads ----------------------------------------------------------------------------


def test_one_read_for_a_block_that_fits_two_for_one_that_does_not(setting, monkeypatch):
    index, queries = setting
    fits = score(index, queries, datainf())
    assert fits.reads == {"lower": 1, "upper": 1, "bias": 1}
    largest = []

    class Watching(DataInf):
        def score_block(self, block, vectors, context):
            largest.append(max(g.nbytes for _, g in block.chunks()))
            return super().score_block(block, vectors, context)

    monkeypatch.setattr(blocks, "PIECE_BYTES", 6 * 72 * 4)
    monkeypatch.setattr(blocks, "chunk_rows", lambda _: 1)
    streamed = score(index, queries, Watching(DataInfSettings()), memory_limit_mb=0)
    # One more for the watching, and one group of queries each: the limit is absurd.
    assert streamed.reads == dict.fromkeys(fits.reads, 9)
    assert max(largest) <= 6 * 72 * 4
    np.testing.assert_allclose(streamed.matrix, fits.matrix, rtol=1e-10)


def test_queries_are_cut_into_groups_that_fit(setting):
    index, queries = setting
    seen = []

    class Watching(GradDot):
        def score_block(self, block, vectors, context):
            seen.append(len(vectors))
            assert len(context.query_norms) == len(vectors)
            assert vectors.nbytes <= (1 << 20) / 4
            return super().score_block(block, vectors, context)

    many = replace(queries, combination=np.tile(np.eye(6), (1000, 1)))
    settings = GradDotSettings(normalize_query=True)
    found = score(index, many, Watching(settings), memory_limit_mb=1)
    assert sum(seen) == 3 * 6000
    whole = score(index, many, GradDot(settings))
    np.testing.assert_allclose(found.matrix, whole.matrix, rtol=1e-12, atol=1e-15)


def test_progress(setting):
    index, queries = setting
    seen = []
    score(index, queries, graddot(), progress=lambda *now: seen.append(now))
    assert seen == [(1, 3), (2, 3), (3, 3)]


# --- results -------------------------------------------------------------------------------------


def test_aggregate_and_predicted_change(setting):
    index, queries = setting
    found = score(index, queries, graddot())
    np.testing.assert_allclose(found.aggregate(), found.matrix.mean(axis=0))
    np.testing.assert_allclose(found.predicted_loss_delta_if_removed(), found.aggregate() / 23)
    with pytest.raises(UsageError, match="aggregation 'median'"):
        found.aggregate("median")


def test_a_block_of_zeros_is_told(fakes, tokens, setting, tmp_path):
    _, queries = setting

    class Silent:
        def __init__(self):
            self.inner = fakes.BigramCapture()
            self.blocks = self.inner.blocks

        def __call__(self, batch):
            result = self.inner(batch)
            result.blocks["upper"][:] = 0.0
            return result

    found = score(fakes.make_index(tmp_path / "z", tokens, Silent()), queries, datainf())
    assert any("1 of 3 blocks contribute nothing" in n and "upper" in n for n in found.notes)
    assert np.isfinite(found.matrix).all()
    assert found.matrix.any()


def test_a_query_of_zero_is_told(setting):
    index, queries = setting
    combination = queries.combination.copy()
    combination[1] = 0.0
    engine = GradDot(GradDotSettings(normalize_query=True))
    found = score(index, replace(queries, combination=combination), engine)
    assert not found.matrix[1].any()
    assert any("1 of 3 queries have a zero gradient" in note for note in found.notes)


def test_a_query_row_without_gradient_is_told(fakes, setting, tmp_path):
    index, queries = setting
    lacking = fakes.make_tokens(6, seed=77, unsupervised=(1,))
    built = fakes.make_index(tmp_path / "q2", lacking)
    found = score(index, replace(queries, index=built), graddot())
    assert any(lacking.ids[1] in note for note in found.notes)
    unused = replace(queries, index=built, combination=queries.combination[1:])
    assert score(index, unused, graddot()).notes == ()
