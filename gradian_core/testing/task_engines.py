"""What an engine that asks for what it needs promises."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gradian_core.protocols import TaskEngine
from gradian_core.specs import EngineSpec
from gradian_core.testing.hostile import HOSTILE
from gradian_core.testing.promise import Test, require
from gradian_core.testing.tasks import MemoryTask, Pair

__all__ = ["tests_of"]

_ROWS: tuple[Pair, ...] = (
    ("What is the capital of Norway?", "Oslo"),
    ("Boil the pasta, please.", "It is done in ten minutes."),
    ("Sort the list 3 1 2.", "1 2 3"),
    ("Which animal says moo?", "The cow says moo."),
    ("Book a table for two.", "A table for two is booked."),
)
_ITEMS: tuple[Pair, ...] = (("What is the capital of Norway?", "Oslo"), ("Sort 9 8.", "8 9"))


def _score(
    engine: TaskEngine, rows: Sequence[Pair] = _ROWS, items: Sequence[Pair] = _ITEMS
) -> NDArray[np.float64]:
    task = MemoryTask(rows, items)
    found = np.asarray(engine.score(task))
    require(
        found.shape == (task.q, task.n),
        f"The scores have shape {found.shape}, not {(task.q, task.n)}.",
    )
    require(found.dtype.kind == "f", f"The scores are {found.dtype}, no floating point numbers.")
    require(np.isfinite(found).all(), "A score is not a finite number.")
    for sentence in (*engine.caveats(task), *task.notes):
        fine = isinstance(sentence, str) and sentence.strip() and sentence.isprintable()
        require(fine, f"{sentence!r} is no sentence on one line.")
    return found.astype(np.float64)


def _score_all(engine: TaskEngine) -> None:
    _score(engine)


def _repeats(engine: TaskEngine) -> None:
    first = _score(engine)
    _score(engine, _ROWS[::-1])
    require(np.array_equal(first, _score(engine)), "Asked again, it gives other scores.")


def _like(engine: TaskEngine) -> None:
    scores = _score(engine)[0]
    require(
        scores[0] == scores.max() and scores[0] > scores[1:].min(),
        "A row that is the query itself is not the one that reinforced it most. Positive means "
        "reinforced: see the sign convention in gradian_core.protocols.",
    )


def _permutation(engine: TaskEngine) -> None:
    straight, back = _score(engine), _score(engine, _ROWS[::-1])[:, ::-1]
    scale = max(float(np.abs(straight).max()), 1e-300)
    require(
        np.abs(straight - back).max() <= 1e-6 * scale, "Scores depend on the order of the rows."
    )


def _edges(engine: TaskEngine) -> None:
    _score(engine, _ROWS[:1], _ITEMS[:1])
    hostile = [text.encode("utf-8", "replace").decode() for text in HOSTILE if text.strip()]
    _score(engine, [(text, text) for text in hostile])
    _score(engine, _ROWS, [(text, text) for text in hostile])


_TESTS: list[Test[TaskEngine]] = [
    ("shape", "scores are finite, one for each query and row; caveats are sentences", _score_all),
    ("deterministic", "the same task gives the same bits", _repeats),
    ("like", "no row scores above one that is the query itself", _like),
    ("permutation", "in another order of rows each row keeps its score", _permutation),
    ("edges", "one row and hostile texts crash nothing", _edges),
]


def tests_of(spec: EngineSpec) -> list[Test[TaskEngine]]:
    """Return what such an engine is tested on; a baseline claims nothing of its sign."""
    return [test for test in _TESTS if not (spec.baseline and test[0] == "like")]
