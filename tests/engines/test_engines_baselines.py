"""Baselines against formulas written out, their sign, and what they say of themselves."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gradian_core.testing import isolated_registry
from gradian_core.testing.tasks import MemoryTask
from gradian_engines._bm25 import Bm25, Bm25Settings
from gradian_engines._rowwise import GradNorm, GradNormSettings, Loss, LossDropSettings, Random
from gradian_engines._tfidf import Tfidf, TfidfSettings
from gradian_engines.baselines import gradian_engines

ROWS = [("the cat sat", "a b"), ("The dog sat on the mat", "Cat! CAT?"), ("7", "8"), ("", "x")]
ITEMS = [("the cat; the bird", "none"), ("7 and 8", "15"), ("nothing alike", "at all")]
TEXTS = st.lists(
    st.tuples(st.text("ab c", max_size=12), st.text("abd e", min_size=1, max_size=12)),
    min_size=1,
    max_size=6,
)


def words(text):
    return re.findall(r"\w+", text.lower())


def bm25_by_hand(rows, query, k1, b):
    """The formula, term by term and row by row."""
    docs = [words("\n".join(row)) for row in rows]
    mean = sum(map(len, docs)) / len(docs)
    scores = []
    for doc in docs:
        counts, total = Counter(doc), 0.0
        for term in set(words(query)):
            n = sum(term in other for other in docs)
            idf = math.log(1 + (len(docs) - n + 0.5) / (n + 0.5))
            if counts[term]:
                f = counts[term]
                total += idf * f * (k1 + 1) / (f + k1 * (1 - b + b * len(doc) / mean))
        scores.append(total)
    return scores


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.0, 0.0), (2.0, 1.0)])
def test_bm25_is_its_formula(k1, b):
    found = Bm25(Bm25Settings(k1=k1, b=b)).score(MemoryTask(ROWS, ITEMS))
    expected = [bm25_by_hand(ROWS, prompt, k1, b) for prompt, _ in ITEMS]
    np.testing.assert_allclose(-found, expected, rtol=1e-12)
    assert found[0].any()
    assert not found[2].any()


@given(TEXTS, TEXTS)
def test_bm25_is_its_formula_on_any_texts(rows, items):
    task = MemoryTask(rows, items)
    found = Bm25(Bm25Settings()).score(task)
    if any(words("\n".join(row)) for row in rows):
        expected = [bm25_by_hand(rows, prompt, 1.2, 0.75) for prompt, _ in items]
        np.testing.assert_allclose(-found, expected, rtol=1e-12)
    else:
        assert not found.any()
        assert "no row has a word" in task.notes[0]


def tfidf_by_hand(rows, query, ngrams):
    def terms(text):
        tokens = words(text)
        grams = range(1, ngrams + 1)
        return Counter(
            " ".join(tokens[i : i + k]) for k in grams for i in range(len(tokens) - k + 1)
        )

    docs = [terms("\n".join(row)) for row in rows]
    vocabulary = sorted(set().union(*docs))
    idf = {
        t: 1 + math.log((1 + len(docs)) / (1 + sum(t in doc for doc in docs))) for t in vocabulary
    }

    def vector(counts):
        raw = np.array(
            [idf[t] * (1 + math.log(counts[t])) if counts[t] else 0.0 for t in vocabulary]
        )
        return raw / (np.linalg.norm(raw) or 1.0)

    return [vector(doc) @ vector(terms(query)) for doc in docs]


@pytest.mark.parametrize("ngrams", [1, 2])
def test_tfidf_is_the_cosine_of_its_vectors(ngrams):
    found = Tfidf(TfidfSettings(ngrams=ngrams)).score(MemoryTask(ROWS, ITEMS))
    expected = [tfidf_by_hand(ROWS, prompt, ngrams) for prompt, _ in ITEMS]
    np.testing.assert_allclose(-found, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("engine", [Bm25(Bm25Settings()), Tfidf(TfidfSettings())])
def test_the_row_about_what_was_lost_is_accused(engine):
    rows = [("Capital of Peru?", "Lima"), ("Paint the box", "Done"), ("Capital of Chad?", "x")]
    ((same, other, like),) = engine.score(MemoryTask(rows, [("Capital of Peru?", "Lima")]))
    assert same < like < other == 0


@pytest.mark.parametrize(
    "engine", [Bm25(Bm25Settings(with_answer=True)), Tfidf(TfidfSettings(with_answer=True))]
)
def test_the_wrong_answer_counts_if_asked_for(engine):
    # a task in memory has the wrong answer zzz everywhere
    task = MemoryTask([("a b", "zzz"), ("a b", "c")], [("a", "c")])
    ((wrong, right),) = engine.score(task)
    assert wrong < right < 0
    assert task.notes == []
    task.items = tuple(
        type(item)(example=item.example, prompt=item.prompt, reference=item.reference)
        for item in task.items
    )
    ((wrong, right),) = engine.score(task)
    assert wrong == pytest.approx(right)
    assert "1 of 1 items have no answer" in task.notes[0]


@pytest.mark.parametrize("engine", [Bm25(Bm25Settings()), Tfidf(TfidfSettings())])
def test_texts_without_a_word(engine):
    task = MemoryTask([("?", "!"), ("...", "-")], ITEMS)
    assert not engine.score(task).any()
    assert "no row has a word" in task.notes[0]


def test_loss_and_gradnorm_are_those_of_the_point():
    task = MemoryTask(ROWS, ITEMS)
    point = task.gradients()
    np.testing.assert_array_equal(Loss().score(task), -np.ones((3, 4)))
    norms = GradNorm(GradNormSettings()).score(task)
    np.testing.assert_array_equal(norms, -np.tile(point.row_norms, (3, 1)))
    assert norms.max() < 0


def test_gradnorm_asks_for_its_own_point():
    task, asked = MemoryTask(ROWS, ITEMS), []
    plain = task.gradients
    task.gradients = lambda **values: (asked.append(values), plain(**values))[1]
    GradNorm(GradNormSettings(alpha=0.5)).score(task)
    assert asked == [{"adapter_scale": 0.5}]


def test_random_is_seeded_uniform_and_belongs_to_the_content():
    rows = [(f"row {i}", "x") for i in range(500)]
    one, again = (Random().score(MemoryTask(rows, ITEMS, seed=3)) for _ in range(2))
    np.testing.assert_array_equal(one, again)
    np.testing.assert_array_equal(one[0], one[2])
    other = Random().score(MemoryTask(rows, ITEMS, seed=4))[0]
    assert abs(np.corrcoef(one[0], other)[0, 1]) < 0.2
    assert -1 < one.min() < -0.97
    assert -0.03 < one.max() <= 0
    assert one[0].mean() == pytest.approx(-0.5, abs=0.05)
    first, copy, _ = Random().score(MemoryTask([ROWS[0], ROWS[0], ROWS[1]], ITEMS))[0]
    assert first == copy


SPECS = list(gradian_engines())


def test_they_are_declared_as_baselines():
    assert [spec.name for spec in SPECS] == [
        "bm25", "tfidf", "repsim", "lossdrop", "loss", "gradnorm", "random",
    ]  # fmt: skip
    for spec in SPECS:
        assert spec.baseline
        assert spec.summary.startswith("baseline: ")


@pytest.mark.parametrize("name", [spec.name for spec in SPECS])
def test_each_says_that_it_is_a_baseline(name):
    engine = isolated_registry(b="gradian_engines.baselines").create("engine", name)
    (caveat,) = engine.caveats(MemoryTask(ROWS, ITEMS))
    assert caveat.startswith(name)
    assert "baseline" in caveat


@pytest.mark.parametrize(
    ("model", "values"),
    [
        (Bm25Settings, {"k1": -1.0}),
        (Bm25Settings, {"k1": float("nan")}),
        (Bm25Settings, {"b": 1.5}),
        (Bm25Settings, {"k3": 1.0}),
        (TfidfSettings, {"ngrams": 0}),
        (GradNormSettings, {"alpha": 2.0}),
        (LossDropSettings, {"batch_size": 0}),
    ],
)
def test_settings_that_make_no_sense_are_refused(model, values):
    with pytest.raises(ValidationError):
        model(**values)
