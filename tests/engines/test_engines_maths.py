"""The engines' maths against loops, linear algebra, and properties that need no oracle."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gradian_core.attribution.agreement import agreement
from gradian_core.protocols import BlockEngine, ScoringContext
from gradian_engines._datainf import DataInf, DataInfSettings
from gradian_engines._graddot import GradDot, GradDotSettings


@dataclass
class ArrayBlock:
    """A block in memory that counts passes."""

    gradients: np.ndarray
    piece: int = 7
    exact_dim: int = 0
    name: str = "block"
    passes: int = field(default=0, init=False)

    def __post_init__(self):
        self.n, self.dim = self.gradients.shape
        self.exact_dim = self.exact_dim or self.dim
        self.squared_norms = (self.gradients.astype(np.float64) ** 2).sum(axis=1)

    def chunks(self):
        self.passes += 1
        for start in range(0, self.n, self.piece):
            rows = slice(start, min(start + self.piece, self.n))
            yield rows, self.gradients[rows]


def context(V, n=20, **facts):
    return ScoringContext(n_examples=n, query_norms=np.linalg.norm(V, axis=1), **facts)


def run(engine, G, V, piece=7, **facts):
    return engine.score_block(ArrayBlock(G, piece), V, context(V, len(G), **facts))


def datainf(**values):
    return DataInf(DataInfSettings(**values))


def graddot(**values):
    return GradDot(GradDotSettings(**values))


def brute(G, V, scale=0.1, damping=None):
    """The paper's formula, row by row."""
    n, dim = G.shape
    if damping is None:
        damping = scale * sum((row @ row) / dim for row in G) / n
    scores = np.empty((len(V), n))
    for query, v in enumerate(V):
        inner = np.zeros(dim)
        for row in G:
            inner += (row @ v) / (damping + row @ row) * row
        r = (v - inner / n) / damping
        for j, row in enumerate(G):
            scores[query, j] = r @ row
    return scores


def inverse(G, V, damping):
    n, dim = G.shape
    return V @ np.linalg.solve(G.T @ G / n + damping * np.eye(dim), G.T)


def draw(n=20, dim=9, q=3, seed=0):
    rng = np.random.default_rng(seed)
    # Rows of very different size, as in a real index.
    sizes = np.exp(rng.normal(0, 1.5, (n, 1)))
    return sizes * rng.standard_normal((n, dim)), rng.standard_normal((q, dim))


CASES = st.tuples(st.integers(1, 30), st.integers(1, 12), st.integers(1, 4), st.integers(0, 999))


@settings(deadline=None)
@given(CASES, st.integers(1, 31))
def test_datainf_is_the_formula_for_any_chunking(case, piece):
    G, V = draw(*case)
    expected = brute(G, V)
    # The bracket cancels where one row dominates, so the bound is relative to the whole.
    np.testing.assert_allclose(
        run(datainf(), G, V, piece), expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max()
    )


def test_datainf_with_absolute_damping():
    G, V = draw()
    np.testing.assert_allclose(
        run(datainf(lambda_override=0.7), G, V), brute(G, V, damping=0.7), rtol=1e-12
    )


@given(st.integers(1, 500), st.integers(0, 99))
def test_datainf_of_one_row_is_the_exact_inverse(dim, seed):
    G, V = draw(1, dim, 2, seed)
    damping = 0.1 * float((G**2).mean())
    expected = V @ np.linalg.solve(G.T @ G + damping * np.eye(dim), G.T)
    np.testing.assert_allclose(
        run(datainf(), G, V), expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max()
    )


def test_datainf_of_one_wide_row_keeps_its_digits():
    # The bracket is lambda / |g|^2 = 1e-7 here: in float32 nothing would be left of it.
    rng = np.random.default_rng(0)
    G = rng.standard_normal((1, 10**6)).astype(np.float32)
    square = float((G.astype(np.float64) ** 2).sum())
    damping = 0.1 * square / 10**6
    found = run(datainf(), G, G.astype(np.float64))
    np.testing.assert_allclose(found, square / (square + damping), rtol=1e-6)


def test_datainf_approximates_the_inverse_and_is_not_it():
    G, V = draw(60, 12, 1)
    damping = 0.1 * float((G**2).mean())
    exact = inverse(G, V, damping)
    found = run(datainf(), G, V)
    assert np.abs(found - exact).max() > 0.1 * np.abs(exact).max()
    assert agreement(found[0], exact[0]).spearman > 0.5


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_datainf_ignores_the_unit_of_gradients(factor):
    G, V = draw()
    np.testing.assert_allclose(
        run(datainf(), factor * G, factor * V), run(datainf(), G, V), rtol=1e-9
    )


def test_datainf_under_absolute_damping_does_not():
    G, V = draw()
    engine = datainf(lambda_override=0.5)
    assert not np.allclose(run(engine, 10 * G, 10 * V), run(engine, G, V), rtol=1e-2)


@pytest.mark.parametrize("engine", [datainf(), graddot()], ids=["datainf", "dot"])
def test_linear_in_the_query_and_equivariant_in_the_rows(engine):
    G, V = draw()
    scores = run(engine, G, V)
    together = run(engine, G, np.array([2 * V[0] - 3 * V[1]]))
    np.testing.assert_allclose(together[0], 2 * scores[0] - 3 * scores[1], rtol=1e-9, atol=1e-9)
    order = np.random.default_rng(1).permutation(len(G))
    np.testing.assert_allclose(run(engine, G[order], V), scores[:, order], rtol=1e-9, atol=1e-12)


@given(CASES)
def test_an_example_never_degrades_itself(case):
    # The preconditioner is positive definite, so the sign convention shows on the diagonal.
    G, _ = draw(*case)
    assert (np.diag(run(datainf(), G, G)) > 0).all()
    assert (np.diag(run(graddot(), G, G)) > 0).all()


def test_heavy_damping_ranks_like_graddot():
    G, V = draw(40)
    heavy = run(datainf(lambda_override=1e9), G, V)
    np.testing.assert_allclose(1e9 * heavy, run(graddot(), G, V), rtol=1e-6)
    light = run(datainf(), G, V)
    assert agreement(light[0], run(graddot(), G, V)[0]).spearman < 0.999


def test_projection_does_not_change_the_damping():
    G, V = draw()
    narrow = ArrayBlock(G, exact_dim=90)
    found = datainf().score_block(narrow, V, context(V))
    np.testing.assert_allclose(found, brute(G, V, scale=0.01), rtol=1e-10)


def test_a_block_of_zeros_contributes_nothing():
    G, V = draw()
    for engine in (datainf(), datainf(lambda_override=1.0), graddot()):
        assert not run(engine, 0 * G, V).any()


@pytest.mark.parametrize(("engine", "passes"), [(datainf(), 2), (graddot(), 1)])
def test_passes_do_not_grow_with_queries(engine, passes):
    G, V = draw(q=16)
    block = ArrayBlock(G)
    engine.score_block(block, V, context(V))
    assert block.passes == passes


def test_float32_gradients_are_summed_in_float64():
    rng = np.random.default_rng(0)
    G = rng.standard_normal((3, 100_000)).astype(np.float32)
    V = rng.standard_normal((2, 100_000))
    expected = V @ G.astype(np.float64).T
    np.testing.assert_allclose(run(graddot(), G, V), expected, rtol=1e-11)


# --- graddot -------------------------------------------------------------------------------------


def test_normalize_query_divides_by_the_norm_over_all_blocks():
    G, V = draw()
    V = np.vstack([V, np.zeros(V.shape[1])])
    whole = ScoringContext(n_examples=len(G), query_norms=np.array([2.0, 4.0, 8.0, 0.0]))
    found = graddot(normalize_query=True).score_block(ArrayBlock(G), V, whole)
    np.testing.assert_allclose(found[:3], V[:3] @ G.T / np.array([[2.0], [4.0], [8.0]]))
    assert not found[3].any()


def test_caveats_name_the_damping():
    _, V = draw()
    assert "lambda_scale = 0.1" in datainf().caveats(context(V))[0]
    assert "lambda_override = 2" in datainf(lambda_override=2.0).caveats(context(V))[0]
    assert "curvature" in graddot().caveats(context(V))[0]


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "values"),
    [
        (DataInfSettings, {"lambda_scale": 0.0}),
        (DataInfSettings, {"lambda_scale": float("inf")}),
        (DataInfSettings, {"lambda_override": 0.0}),
        (DataInfSettings, {"lambda_override": -1.0}),
        (DataInfSettings, {"normalize_query": True}),
        (GradDotSettings, {"lambda_scale": 0.1}),
    ],
)
def test_settings_that_make_no_sense_are_refused(model, values):
    with pytest.raises(ValidationError):
        model(**values)


def test_they_keep_the_protocol():
    for engine in (datainf(), graddot()):
        assert isinstance(engine, BlockEngine)
