"""The path engine's maths against dense formulas, and properties that need no oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gradian_core.protocols import ScoringContext, TaskEngine
from gradian_core.testing.blocks import MemoryBlock
from gradian_engines._path import Path, PathSettings

FORMS = ("dot", "cosine", "adam", "acos")


class Point:
    """Dense gradients, cut into blocks."""

    def __init__(self, G, V, cuts, piece=4):
        self.G, self.V, self.cuts, self.piece = G, V, cuts, piece
        self.context = ScoringContext(n_examples=len(G), query_norms=np.linalg.norm(V, axis=1))
        self.row_norms = np.linalg.norm(G, axis=1)

    def blocks(self):
        for span in self.cuts:
            yield MemoryBlock(self.G[:, span], piece=self.piece), self.V[:, span]


class Task:
    """Other gradients at each scale."""

    def __init__(self, points):
        self.points, self.notes, self.asked = points, [], []
        first = next(iter(points.values()))
        self.q, self.n = len(first.V), len(first.G)

    def gradients(self, *, signal=None, adapter_scale=1.0, checkpoint=None):
        assert checkpoint is None
        self.asked.append(signal)
        return self.points[adapter_scale]

    def note(self, sentence):
        self.notes.append(sentence)


def draw(n=11, dim=9, q=3, seed=0):
    rng = np.random.default_rng(seed)
    sizes = np.exp(rng.normal(0, 1.5, (n, 1)))
    return sizes * rng.standard_normal((n, dim)), rng.standard_normal((q, dim))


def task_of(alphas=(0.5, 1.0), cuts=(slice(0, 4), slice(4, 9)), **shape):
    return Task({alpha: Point(*draw(seed=i, **shape), cuts) for i, alpha in enumerate(alphas)})


def path(**values):
    return Path(PathSettings(**values))


def dense(point, form):
    """The formula at one point, row by row and query by query, over whole vectors."""
    d = np.zeros(point.G.shape[1])
    for span in point.cuts:
        part = np.sqrt((point.G[:, span] ** 2).mean(axis=0))
        d[span] = part + 0.1 * part.mean()
    out = np.zeros((len(point.V), len(point.G)))
    for j, v in enumerate(point.V):
        for i, g in enumerate(point.G):
            if form in {"adam", "acos"}:
                left, right = v / d, g if form == "adam" else g / d
            else:
                left, right = v, g
            out[j, i] = left @ right
            if form != "dot":
                out[j, i] /= np.linalg.norm(right)
            if form in {"cosine", "acos"}:
                out[j, i] /= np.linalg.norm(left)
    return out


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_its_formula_averaged_over_scales(form):
    task = task_of((0.25, 0.5, 1.0))
    expected = 0.0
    for point in task.points.values():
        at = dense(point, form)
        expected = expected + at / np.abs(at).mean() / 3
    found = path(form=form, alphas=(0.25, 0.5, 1.0)).score(task)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@settings(deadline=None)
@given(st.integers(1, 12), st.sampled_from(FORMS))
def test_pieces_do_not_matter(piece, form):
    whole, cut = task_of(), task_of()
    for point in cut.points.values():
        point.piece = piece
    engine = path(form=form, alphas=(0.5, 1.0))
    np.testing.assert_allclose(engine.score(cut), engine.score(whole), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_rows_keep_their_scores_in_another_order(form):
    straight, mixed = task_of(), task_of()
    order = np.random.default_rng(1).permutation(straight.n)
    for point in mixed.points.values():
        point.G, point.row_norms = point.G[order], point.row_norms[order]
    engine = path(form=form, alphas=(0.5, 1.0))
    np.testing.assert_allclose(engine.score(mixed), engine.score(straight)[:, order], rtol=1e-11)


def scores_of(G, V, form, cuts=(slice(0, 4), slice(4, 9))):
    return path(form=form, alphas=(1.0,)).score(Task({1.0: Point(G, V, cuts)}))


@pytest.mark.parametrize("form", FORMS)
def test_linear_in_the_query_up_to_its_scale(form):
    # the mean size is divided out, and a cosine divides by the query's norm
    G, V = draw()
    one = scores_of(G, V, form)
    both = scores_of(G, np.vstack([V[0], V[1], 2 * V[0] - 3 * V[1]]), form)
    if form in {"dot", "adam"}:
        np.testing.assert_allclose(both[2], 2 * both[0] - 3 * both[1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scores_of(G, -V, form), -one, rtol=1e-12)
    np.testing.assert_allclose(scores_of(7 * G, 5 * V, form), one, rtol=1e-10)


@pytest.mark.parametrize("form", ["cosine", "acos"])
def test_the_length_of_a_query_and_of_a_row_is_no_matter(form):
    G, V = draw()
    one = scores_of(G, V, form)
    np.testing.assert_allclose(
        scores_of(G, V * np.array([[1.0], [9.0], [0.1]]), form), one, rtol=1e-10
    )
    if form == "cosine":  # acos divides by d, which long rows decide
        lengths = np.random.default_rng(3).uniform(0.1, 9, (len(G), 1))
        np.testing.assert_allclose(scores_of(G * lengths, V, form), one, rtol=1e-10)


@given(st.integers(0, 200))
def test_a_row_that_is_the_query_has_the_largest_cosine(seed):
    G, V = draw(seed=seed)
    G[3] = 2.5 * V[1]
    for form in ("cosine", "acos"):
        scores = scores_of(G, V, form)
        assert scores[1].argmax() == 3
        assert scores[1, 3] > 0


def test_units_of_components_do_not_matter_to_acos_beyond_the_damping():
    # what Adam is there for: a rescaled parameter has the same preconditioned gradient
    G, V = draw(dim=9)
    unit = np.repeat([1.0, 50.0], [4, 5])
    np.testing.assert_allclose(
        scores_of(G * unit, V * unit, "acos"), scores_of(G, V, "acos"), rtol=1e-9
    )
    assert not np.allclose(scores_of(G * unit, V * unit, "cosine"), scores_of(G, V, "cosine"))


@pytest.mark.parametrize("form", FORMS)
def test_zeros_score_zero(form):
    G, V = draw()
    G[2], V[1], G[:, :4] = 0.0, 0.0, 0.0
    scores = scores_of(G, V, form)
    assert np.isfinite(scores).all()
    assert not scores[1].any()
    assert not scores[:, 2].any()
    assert scores[0].any()


def test_a_scale_without_gradients_is_told_and_does_not_count():
    G, V = draw()
    cuts = (slice(0, 9),)
    task = Task({0.0: Point(0 * G, V, cuts), 1.0: Point(G, V, cuts)})
    found = path(alphas=(0.0, 1.0)).score(task)
    np.testing.assert_allclose(found, scores_of(G, V, "acos", cuts) / 2, rtol=1e-12)
    assert task.notes == ["path: at scale 0 every score is zero; it counts for nothing."]


def test_its_own_signal_is_asked_for():
    task = task_of()
    path(alphas=(0.5, 1.0), signal="target").score(task)
    path(alphas=(0.5,)).score(task)
    assert task.asked == ["target", "target", None]


def test_a_projected_index_is_told():
    G, V = draw()
    cuts = (slice(0, 9),)
    engine = path(alphas=(1.0,))
    engine.score(Task({1.0: Point(G, V, cuts)}))
    assert len(engine.caveats(None)) == 1

    class Projected(Point):
        def blocks(self):
            block = MemoryBlock(self.G)
            block.exact_dim = 90
            yield block, self.V

    engine.score(Task({1.0: Projected(G, V, cuts)}))
    assert "projected" in engine.caveats(None)[1]


@pytest.mark.parametrize(
    "values",
    [
        {"alphas": ()},
        {"alphas": (0.5, 0.5)},
        {"alphas": (-0.1,)},
        {"alphas": (1.5,)},
        {"alphas": (float("nan"),)},
        {"form": "sine"},
        {"power": 1},
    ],
)
def test_settings_that_make_no_sense_are_refused(values):
    with pytest.raises(ValidationError):
        PathSettings(**values)


def test_it_keeps_the_protocol():
    assert isinstance(path(), TaskEngine)
