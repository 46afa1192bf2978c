"""TracIn against its formula, checkpoint by checkpoint."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from pydantic import ValidationError

from gradian_core.protocols import Checkpoint, ScoringContext, TaskEngine
from gradian_core.testing.blocks import MemoryBlock
from gradian_engines._tracin import TracIn, TracInSettings

CUTS = (slice(0, 4), slice(4, 9))


def tracin(**values):
    return TracIn(TracInSettings(**values))


class Task:
    """Other gradients at each checkpoint."""

    def __init__(self, rates, n=8, q=3):
        self.n, self.q, self.notes = n, q, []
        self.checkpoints = tuple(
            Checkpoint(path=Path(str(i)), step=i, learning_rate=rate)
            for i, rate in enumerate(rates)
        )
        self.dense = [
            (
                np.random.default_rng(i).standard_normal((n, 9)),
                np.random.default_rng(-i - 1 + 99).standard_normal((q, 9)),
            )
            for i in range(len(rates))
        ]

    def gradients(self, *, signal=None, adapter_scale=1.0, checkpoint=None):
        assert (signal, adapter_scale) == (None, 1.0)
        G, V = self.dense[self.checkpoints.index(checkpoint)]
        return SimpleNamespace(
            context=ScoringContext(n_examples=len(G), query_norms=np.linalg.norm(V, axis=1)),
            row_norms=np.linalg.norm(G, axis=1),
            blocks=lambda: ((MemoryBlock(G[:, s], piece=3), V[:, s]) for s in CUTS),
        )

    def note(self, sentence):
        self.notes.append(sentence)


def test_the_sum_over_checkpoints():
    task = Task([1e-3, 5e-4, 1e-4])
    expected = sum(
        c.learning_rate * V @ G.T for c, (G, V) in zip(task.checkpoints, task.dense, strict=True)
    )
    np.testing.assert_allclose(tracin().score(task), expected, rtol=1e-12)
    assert tracin().caveats(task) == ()


def test_cosines_are_over_all_blocks():
    task = Task([1e-3, 5e-4])
    expected = sum(
        c.learning_rate
        * (V / np.linalg.norm(V, axis=1)[:, None])
        @ (G / np.linalg.norm(G, axis=1)[:, None]).T
        for c, (G, V) in zip(task.checkpoints, task.dense, strict=True)
    )
    np.testing.assert_allclose(tracin(cosine=True).score(task), expected, rtol=1e-12)
    both = tracin(cosine=True, normalize_query=True)
    np.testing.assert_allclose(both.score(task), expected, rtol=1e-12)


def test_unit_queries():
    task = Task([1e-3])
    G, V = task.dense[0]
    expected = 1e-3 * (V / np.linalg.norm(V, axis=1)[:, None]) @ G.T
    np.testing.assert_allclose(tracin(normalize_query=True).score(task), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("own", "logged", "rate"), [(None, 2e-4, 2e-4), (0.5, 2e-4, 0.5), (None, None, 1.0)]
)
def test_the_learning_rate(own, logged, rate):
    task = Task([logged])
    G, V = task.dense[0]
    found = tracin(learning_rate=own).score(task)
    np.testing.assert_allclose(found, rate * V @ G.T, rtol=1e-12)


def test_it_says_when_it_degenerates():
    (one,) = tracin().caveats(Task([1e-4]))
    assert "graddot times the learning rate" in one
    (unknown,) = tracin().caveats(Task([None, None]))
    assert "learning rate is unknown" in unknown
    assert tracin(learning_rate=0.1).caveats(Task([None, None])) == ()


def test_checkpoints_without_a_rate_are_left_out_and_told():
    task = Task([None, 5e-4])
    G, V = task.dense[1]
    np.testing.assert_allclose(tracin().score(task), 5e-4 * V @ G.T, rtol=1e-12)
    assert task.notes == [
        "tracin left out 1 of 2 checkpoints: the log has no learning rate for them."
    ]


@pytest.mark.parametrize("values", [{"learning_rate": 0.0}, {"lambda_scale": 0.1}])
def test_settings_that_make_no_sense_are_refused(values):
    with pytest.raises(ValidationError):
        TracInSettings(**values)


def test_it_keeps_the_protocol():
    assert isinstance(tracin(), TaskEngine)
