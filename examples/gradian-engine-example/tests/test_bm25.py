"""The formula, by hand, and the sign."""

import math

import numpy as np
import pytest
from gradian_engine_example.bm25 import Bm25, Bm25Settings, Corpus

from gradian_core.testing.tasks import MemoryTask

TEXTS = ["the cat sat", "the dog sat on the mat", "", "Cat! CAT?"]


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.0, 0.0), (2.0, 1.0)])
def test_the_formula_written_out(k1, b):
    docs = [["the", "cat", "sat"], ["the", "dog", "sat", "on", "the", "mat"], [], ["cat", "cat"]]
    expected = []
    for doc in docs:
        total = 0.0
        for term in ("cat", "the"):
            n = sum(term in other for other in docs)
            idf = math.log(1 + (4 - n + 0.5) / (n + 0.5))
            f = doc.count(term)
            if f:
                total += idf * f * (k1 + 1) / (f + k1 * (1 - b + b * len(doc) / (11 / 4)))
        expected.append(total)
    found = Corpus(TEXTS, Bm25Settings(k1=k1, b=b)).score("The cat; the bird.")
    np.testing.assert_allclose(found, expected)


def test_a_row_that_repeats_the_wrong_answer_scores_below_zero():
    rows = [("Capital of Peru?", "Lima"), ("Capital of Chad?", "zzz"), ("Hello", "Hi")]
    task = MemoryTask(rows, [("Capital of Peru?", "Lima")])
    ((right, wrong, other),) = Bm25(Bm25Settings()).score(task)
    assert right > 0 > wrong
    assert other == 0
    assert task.notes == []


def test_without_an_answer_of_the_model_it_says_so():
    task = MemoryTask([("a b", "c"), ("d", "e")], [("a", "c")])
    task.items = tuple(
        type(item)(example=item.example, prompt=item.prompt, reference=item.reference)
        for item in task.items
    )
    ((like, other),) = Bm25(Bm25Settings()).score(task)
    assert like > other == 0
    assert "never below zero" in task.notes[0]


def test_no_words_at_all():
    assert Corpus(["", " "], Bm25Settings()).score("cat").tolist() == [0.0, 0.0]
