"""Embeddings of training examples, for the clusterers that need a distance."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from gradian_core.config.models import ClusteringSection

__all__ = ["Embedder", "tfidf_embedding"]

_POWER_ITERATIONS = 7
"""scikit-learn's own choice for thin decompositions; makes the result near exact."""
_AUTO_NOTE = (
    "Examples were compared by their words (TF-IDF) and not by meaning, since "
    "clustering.embed_backend is auto."
)
_WORDS = r"(?u)\b\w+\b"
"""Not scikit-learn's ``\\w\\w+``: digits and single letters are all that tells some texts apart."""
_TIE = 1e-6
_NOISE = 1e-10
"""Singular values below this share of the largest one are rounding errors."""


class Embedder:
    """Embeds texts when it is first asked to; hand it to :class:`~.protocols.ClusterTask`.

    Parameters
    ----------
    texts
        One text for each example.
    settings
        The ``clustering`` section of the config.
    seed
        Seed of the randomised decomposition.
    """

    def __init__(self, texts: Sequence[str], settings: ClusteringSection, seed: int) -> None:
        self._texts = texts
        self._settings = settings
        self._seed = seed
        self._vectors: NDArray[np.float64] | None = None
        self._notes: tuple[str, ...] = ()

    def __call__(self) -> NDArray[np.float64]:
        """Return ``(n, k)`` float64 rows of unit length (or zero, for a text without words).

        Raises
        ------
        MissingExtraError
            If sentence-transformers was asked for and is not installed.
        InputError
            If ``clustering.embed_model`` cannot be loaded.
        """
        if self._vectors is None:
            self._vectors = self._embed()
        return self._vectors

    @property
    def notes(self) -> tuple[str, ...]:
        """What was chosen for the user, as sentences; empty until something was embedded."""
        return self._notes

    def _embed(self) -> NDArray[np.float64]:
        settings = self._settings
        if settings.embed_backend == "sentence-transformers":
            return _sentence_embedding(self._texts, settings.embed_model)
        if settings.embed_backend == "auto":
            self._notes = (_AUTO_NOTE,)
        return tfidf_embedding(
            self._texts,
            max_features=settings.max_features,
            svd_dim=settings.svd_dim,
            seed=self._seed,
        )


def tfidf_embedding(
    texts: Sequence[str], *, max_features: int, svd_dim: int, seed: int
) -> NDArray[np.float64]:
    """Embed texts by TF-IDF and a truncated SVD (latent semantic analysis).

    Parameters
    ----------
    texts
        *n* texts.
    max_features
        Cap of the vocabulary; the most frequent words stay.
    svd_dim
        Most dimensions. Fewer come back where the texts do not span as many.
    seed
        Seed of the randomised SVD.

    Returns
    -------
    numpy.ndarray
        ``(n, k)`` float64 with rows of unit length, 1 <= k <= svd_dim. A text without a word of
        the vocabulary is a row of zeros. Signs are fixed, so the result is the same every time.

    Source
    ------
    Deerwester et al., *Indexing by Latent Semantic Analysis*, 1990; Halko, Martinsson and
    Tropp, *Finding Structure with Randomness*, 2011 (the SVD).
    """
    # randomized_svd is what TruncatedSVD runs; TruncatedSVD itself then divides by the total
    # variance, which is zero for identical texts
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.utils.extmath import randomized_svd

    vectorizer = TfidfVectorizer(
        max_features=max_features,
        sublinear_tf=True,
        token_pattern=_WORDS,
    )
    try:
        weights = vectorizer.fit_transform(texts)
    except ValueError:
        # raised for an empty vocabulary, the only way in which it can fail on texts
        return np.zeros((len(texts), 1))

    width = min(svd_dim, *weights.shape)
    left, singular, _ = randomized_svd(
        weights, n_components=width, n_iter=_POWER_ITERATIONS, random_state=seed, flip_sign=False
    )
    kept = singular > _NOISE * singular[0]
    vectors = np.asarray(left[:, kept] * singular[kept], dtype=np.float64)
    vectors *= _signs(vectors)
    # rounding errors would be blown up to unit length where nothing is left of a text
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[lengths[:, 0] <= _NOISE] = 0.0
    return vectors / np.where(lengths > _NOISE, lengths, 1.0)


def _signs(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``(k,)`` signs that make the first of each column's largest entries positive.

    Symmetric texts give entries of equal size and opposite sign; which is the largest is then
    up to rounding, and so would be scikit-learn's own choice.
    """
    sizes = np.abs(vectors)
    first = np.argmax(sizes >= (1.0 - _TIE) * sizes.max(axis=0), axis=0)
    return np.where(vectors[first, np.arange(vectors.shape[1])] < 0.0, -1.0, 1.0)


def _sentence_embedding(texts: Sequence[str], name: str) -> NDArray[np.float64]:
    """Embed by a sentence-transformers model, on the CPU: the same vectors on every machine."""
    if importlib.util.find_spec("sentence_transformers") is None:
        raise MissingExtraError(
            "clustering.embed_backend: sentence-transformers", ("sentence-transformers",), "cluster"
        )
    import sentence_transformers

    try:
        model: Any = sentence_transformers.SentenceTransformer(name, device="cpu")
    except (OSError, ValueError) as error:
        raise InputError(
            f"clustering.embed_model: {name} cannot be loaded: {error}.",
            hint="Give a folder that holds the model, or set clustering.embed_backend: tfidf.",
        ) from error
    vectors = model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
    return np.asarray(vectors, dtype=np.float64)
