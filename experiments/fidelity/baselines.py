"""What any engine has to beat. Scores as everywhere: low is harmful."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.protocols import AttributionTask

__all__ = ["baseline_scores"]

Matrix = NDArray[np.float64]


def baseline_scores(task: AttributionTask, loaded: Any) -> dict[str, Matrix]:
    """Return the scores of all baselines, ``(q, n)`` or ``(1, n)``, in the task's order.

    Parameters
    ----------
    task
        The task.
    loaded
        Its model.
    """
    rows = [example.full_text for example in task.examples]
    asked = [item.prompt for item in task.items]
    point = task.gradients()
    start = task.gradients(adapter_scale=0.0)
    rng = np.random.default_rng(task.seed)
    return {
        "tfidf": -_tfidf(rows, asked),
        "bm25": -_bm25(rows, asked),
        "repsim": -_repsim(task, loaded),
        # rows that the tuned model still finds hard, or that it had to learn most about
        "loss": -_row(point.losses),
        "lossdrop": -_row(start.losses - point.losses),
        "gradnorm": -_row(point.row_norms),
        "random": -_row(rng.random(task.n)),
    }


def _row(values: NDArray[np.floating[Any]]) -> Matrix:
    return np.asarray(values, dtype=np.float64)[None, :]


def _tfidf(rows: Sequence[str], asked: Sequence[str]) -> Matrix:
    from sklearn.feature_extraction.text import TfidfVectorizer

    # one-letter words count: sums are made of them
    words = r"(?u)\b\w+\b"
    vectorizer = TfidfVectorizer(sublinear_tf=True, token_pattern=words)
    documents = vectorizer.fit_transform(rows)
    return np.asarray((vectorizer.transform(asked) @ documents.T).todense(), dtype=np.float64)


def _bm25(rows: Sequence[str], asked: Sequence[str], k: float = 1.5, b: float = 0.75) -> Matrix:
    # Robertson and Zaragoza 2009, with the idf of Lucene, which is never negative.
    documents = [Counter(re.findall(r"\w+", text.lower())) for text in rows]
    lengths = np.array([sum(words.values()) for words in documents], dtype=np.float64)
    scale = k * (1 - b + b * lengths / lengths.mean())
    seen = Counter(word for words in documents for word in words)
    n = len(documents)
    scores = np.zeros((len(asked), n))
    for i, text in enumerate(asked):
        for word in set(re.findall(r"\w+", text.lower())) & seen.keys():
            counts = np.array([words[word] for words in documents], dtype=np.float64)
            idf = np.log(1 + (n - seen[word] + 0.5) / (seen[word] + 0.5))
            scores[i] += idf * counts * (k + 1) / (counts + scale)
    return scores


def _repsim(task: AttributionTask, loaded: Any) -> Matrix:
    """Cosine of the base model's last states at the end of the prompts."""
    queries = task.query_rows("target")
    found = [_states(loaded, tokens) for tokens in (queries.tokens, task.tokens)]
    q, g = (states / np.linalg.norm(states, axis=1, keepdims=True) for states in found)
    return np.asarray(q @ g.T, dtype=np.float64)


def _states(loaded: Any, tokens: Any) -> Matrix:
    import torch

    from gradian_core.gradients.collate import collate

    states = []
    with loaded.base() as model, torch.inference_mode():
        for row in range(len(tokens)):
            batch = collate(tokens, [row], pad_token_id=loaded.pad_token_id, device=loaded.device)
            # the token before the first target is the last of the prompt
            last = int(batch.supervised[0].nonzero()[0]) - 1
            hidden = model(input_ids=batch.input_ids, output_hidden_states=True).hidden_states
            states.append(hidden[-1][0, last].double().numpy())
    return np.stack(states)
