import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradian_core.attribution.embed import Embedder, _signs, tfidf_embedding
from gradian_core.config.models import ClusteringSection
from gradian_core.errors import InputError, MissingExtraError

TOPICS = [f"the capital of country number {i} is a city" for i in range(8)] + [
    f"sort a list of integers in python, variant {i}" for i in range(8)
]


def embed(texts, *, max_features=4096, svd_dim=64, seed=0):
    return tfidf_embedding(texts, max_features=max_features, svd_dim=svd_dim, seed=seed)


def test_all_dimensions_give_the_cosines_of_tfidf():
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b").fit_transform(TOPICS)
    vectors = embed(TOPICS)
    np.testing.assert_allclose(vectors @ vectors.T, (weights @ weights.T).toarray(), atol=1e-9)


def test_topics_lie_apart_in_few_dimensions():
    vectors = embed(TOPICS, svd_dim=2)
    assert vectors.shape == (16, 2)
    cosines = vectors @ vectors.T
    assert cosines[:8, :8].min() > 0.9
    assert cosines[8:, 8:].min() > 0.9
    assert cosines[:8, 8:].max() < 0.5


def test_repeats_bit_by_bit_with_signs():
    np.testing.assert_array_equal(embed(TOPICS, svd_dim=3), embed(TOPICS, svd_dim=3))


def test_seed_of_the_randomised_method_changes_neither_values_nor_signs():
    # no two singular values are equal here, so each direction is unique up to its sign
    texts = [" ".join(["a b c d e f g"[: 2 * n + 1]] * (n + 1)) for n in range(7)]
    np.testing.assert_allclose(embed(texts, seed=1), embed(texts, seed=2), atol=1e-6)


def test_signs_do_not_hang_on_rounding():
    up = np.array([[-1.0, 2.0, 0.0], [1.0 + 1e-12, -3.0, 0.0]])
    np.testing.assert_array_equal(_signs(up), [-1.0, -1.0, 1.0])
    np.testing.assert_array_equal(_signs(-up), [1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("texts", "shape"),
    [
        (["one text"], (1, 1)),
        (["same words"] * 5, (5, 1)),
        (["...", "!", ""], (3, 1)),
        (["", "word"], (2, 1)),
        (["a b", "c d"], (2, 2)),
    ],
)
def test_small_and_empty(texts, shape):
    vectors = embed(texts)
    assert vectors.shape == shape
    assert vectors.dtype == np.float64
    lengths = np.linalg.norm(vectors, axis=1)
    has_words = [any(ch.isalnum() for ch in text) for text in texts]
    np.testing.assert_allclose(lengths, np.array(has_words, dtype=float), atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=12), st.integers(1, 5))
def test_any_text_gives_finite_rows_of_length_one_or_zero(texts, svd_dim):
    vectors = embed(texts, svd_dim=svd_dim)
    assert vectors.shape[0] == len(texts)
    assert 1 <= vectors.shape[1] <= svd_dim
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.all(np.isclose(lengths, 1.0) | (lengths == 0.0))


def test_auto_is_tfidf_and_says_so():
    embedder = Embedder(TOPICS, ClusteringSection(), seed=3)
    assert embedder.notes == ()
    np.testing.assert_array_equal(embedder(), embed(TOPICS, seed=3))
    assert "TF-IDF" in embedder.notes[0]
    assert embedder() is embedder()


def test_tfidf_asked_for_needs_no_note():
    embedder = Embedder(TOPICS, ClusteringSection(embed_backend="tfidf"), seed=3)
    embedder()
    assert embedder.notes == ()


SENTENCES = ClusteringSection(embed_backend="sentence-transformers", embed_model="some/model")


def test_sentence_transformers_missing(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"gradian-ml\[cluster\]"):
        Embedder(["a"], SENTENCES, seed=0)()


def fake_library(monkeypatch, model):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: object())
    library = SimpleNamespace(SentenceTransformer=model)
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)


def test_sentence_transformers_is_used_when_asked_for(monkeypatch):
    class Model:
        def __init__(self, name, device):
            assert (name, device) == ("some/model", "cpu")

        def encode(self, texts, normalize_embeddings, show_progress_bar):
            assert normalize_embeddings
            assert not show_progress_bar
            return np.ones((len(texts), 1), dtype=np.float32)

    fake_library(monkeypatch, Model)
    vectors = Embedder(["a", "b"], SENTENCES, seed=0)()
    assert vectors.shape == (2, 1)
    assert vectors.dtype == np.float64


def test_sentence_transformers_without_the_model(monkeypatch):
    def model(name, device):
        raise OSError("no such folder")

    fake_library(monkeypatch, model)
    with pytest.raises(InputError, match="some/model cannot be loaded: no such folder"):
        Embedder(["a"], SENTENCES, seed=0)()
