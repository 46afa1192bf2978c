"""The terms that tell one cluster from the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["distinctive_terms"]

_VOCABULARY = 20_000
_LONGEST = 32
_FEWEST = 2
_SHARE = 0.1


def distinctive_terms(
    texts: Sequence[str], index: NDArray[np.integer], n_clusters: int, top: int
) -> list[tuple[str, ...]]:
    r"""Return the ``top`` most distinctive terms of each cluster.

    A class-based TF-IDF: with :math:`p` the share of the cluster's texts that contain the term
    and :math:`q` the share of all other texts, its weight is :math:`p \log (p / q)`. Texts and
    not occurrences are counted, so one long text cannot name a cluster; a word that is as
    common outside weighs nothing, so no list of stop words is needed in any language. Only
    positive weights count, and only terms in at least two texts and a tenth of the cluster.

    Parameters
    ----------
    texts
        *n* texts.
    index
        ``(n,)`` cluster of each text, in ``range(n_clusters)``.
    n_clusters
        Number of clusters. A single one has no terms: there is nothing to tell it from.
    top
        Most terms for each cluster.

    Returns
    -------
    list of tuple of str
        Terms by cluster, the most distinctive first; ties in alphabetical order.

    Source
    ------
    After the class-based TF-IDF of Grootendorst, *BERTopic*, 2022, with the contrast of
    pointwise Kullback-Leibler divergence in place of the inverse frequency.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    nothing: list[tuple[str, ...]] = [()] * n_clusters
    if n_clusters < 2:
        return nothing
    vectorizer = CountVectorizer(
        binary=True,
        max_features=_VOCABULARY,
        token_pattern=rf"(?u)\b\w{{2,{_LONGEST}}}\b",
        dtype=np.float64,
    )
    try:
        presence = vectorizer.fit_transform(texts)
    except ValueError:
        # raised for an empty vocabulary
        return nothing

    n = len(texts)
    totals = np.asarray(presence.sum(axis=0)).ravel()
    words = vectorizer.get_feature_names_out()
    terms: list[tuple[str, ...]] = []
    for cluster in range(n_clusters):
        members = index == cluster
        size = np.count_nonzero(members)
        counts = np.asarray(presence[members].sum(axis=0)).ravel()
        # half a text more on either side: keeps a rare word from an infinite weight
        inside = (counts + 0.5) / (size + 1.0)
        outside = (totals - counts + 0.5) / (n - size + 1.0)
        common = counts >= max(min(_FEWEST, size), _SHARE * size)
        weight = inside * np.log(inside / outside)
        found = np.flatnonzero(common & (weight > 0.0))
        order = found[np.lexsort((words[found], -weight[found]))]
        terms.append(tuple(str(word) for word in words[order[:top]]))
    return terms
