"""What an attribution engine promises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.plugins.record import Provided
from gradian_core.plugins.registry import Registry
from gradian_core.plugins.resolve import load_object, validated_options
from gradian_core.protocols import BlockEngine
from gradian_core.specs import EngineSpec
from gradian_core.testing.blocks import MemoryBlock, context_of
from gradian_core.testing.promise import Promise, Test, each, require

__all__ = ["promises_of"]

Matrix = NDArray[np.floating[Any]]

_CLOSE = 1e-6
"""Relative to the largest score: rounding, and nothing else, may differ."""


def promises_of(registry: Registry, provided: Provided[EngineSpec]) -> Iterator[Promise]:
    """Yield the promises of one engine."""
    spec = provided.spec

    def engine() -> Any:
        return registry.create("engine", spec.name)

    try:
        kind = engine()
    except Exception:  # noqa: BLE001 - the promise to resolve is there to say so
        return
    if not isinstance(kind, BlockEngine):
        if spec.needs != "model":
            from gradian_core.testing.task_engines import tests_of

            yield from each(f"engine:{spec.name}", engine, tests_of(spec))
        return
    tests: list[Test[BlockEngine]] = [
        ("shape", "scores are finite, one for each query and row", _shape),
        ("deterministic", "the same block and queries give the same bits", _repeats),
        ("sign", "a row like the query scores above zero, its opposite below", _sign),
        ("permutation", "in another order of rows each row keeps its score", _permutation),
        ("pieces", "scores do not depend on how many rows come at once", _pieces),
        ("queries", "a query scores the same alone as among others", _queries),
        ("edges", "zero gradients, one row and float32 crash nothing", _edges),
        ("caveats", "its caveats are sentences", _caveats),
    ]
    if spec.linear:
        tests.append(("linear", "scores are linear in the query", _linear))
    if spec.oracle is not None:
        tests.append(
            (
                "oracle",
                "it agrees with its formula written out densely",
                lambda engine: _oracle(engine, provided),
            )
        )
    yield from each(f"engine:{spec.name}", engine, tests)


def _matrices(n: int = 23, dim: int = 7, queries: int = 3) -> tuple[Matrix, Matrix]:
    rng = np.random.default_rng(20)
    # Lengths that differ by orders of magnitude, as those of gradients do.
    scale = np.exp(rng.normal(size=(n, 1)))
    return rng.normal(size=(n, dim)) * scale, rng.normal(size=(queries, dim))


def _score(engine: BlockEngine, gradients: Matrix, queries: Matrix, piece: int = 5) -> Matrix:
    block = MemoryBlock(gradients, piece=piece)
    given = queries.copy()
    given.setflags(write=False)
    found = np.asarray(engine.score_block(block, given, context_of(block, given)))
    require(
        found.shape == (len(queries), len(gradients)),
        f"The scores have shape {found.shape}, not {(len(queries), len(gradients))}.",
    )
    require(found.dtype.kind == "f", f"The scores are {found.dtype}, no floating point numbers.")
    require(np.isfinite(found).all(), "A score is not a finite number.")
    return found


def _same(one: Matrix, other: Matrix, otherwise: str) -> None:
    scale = max(float(np.abs(one).max(initial=0.0)), 1e-300)
    difference = float(np.abs(one - other).max(initial=0.0)) / scale
    require(difference <= _CLOSE, f"{otherwise} They differ by {difference:.1e} of the largest.")


def _shape(engine: BlockEngine) -> None:
    _score(engine, *_matrices())


def _repeats(engine: BlockEngine) -> None:
    gradients, queries = _matrices()
    first = _score(engine, gradients, queries)
    _score(engine, gradients[::-1].copy(), queries)
    require(
        np.array_equal(first, _score(engine, gradients, queries)),
        "Asked again, it gives other scores.",
    )


def _sign(engine: BlockEngine) -> None:
    gradients, queries = _matrices(queries=1)
    query = queries[0] / np.linalg.norm(queries[0])
    rows = np.concatenate([[query, -query], gradients])
    like, opposite = _score(engine, rows, queries)[0, :2]
    require(
        like > 0 > opposite,
        f"A row with the query's own gradient scores {like:.3g}, its opposite {opposite:.3g}. "
        "Positive means reinforced: see the sign convention in gradian_core.protocols.",
    )


def _permutation(engine: BlockEngine) -> None:
    gradients, queries = _matrices()
    order = np.random.default_rng(1).permutation(len(gradients))
    straight = _score(engine, gradients, queries)
    shuffled = _score(engine, gradients[order], queries)
    _same(straight[:, order], shuffled, "Scores depend on the order of rows.")


def _pieces(engine: BlockEngine) -> None:
    gradients, queries = _matrices()
    whole = _score(engine, gradients, queries, piece=len(gradients))
    for piece in (1, 4):
        found = _score(engine, gradients, queries, piece=piece)
        _same(whole, found, f"Scores change if rows come by {piece}.")


def _queries(engine: BlockEngine) -> None:
    gradients, queries = _matrices()
    together = _score(engine, gradients, queries)
    alone = np.concatenate([_score(engine, gradients, query[None]) for query in queries])
    _same(together, alone, "A query's scores depend on the other queries.")


def _linear(engine: BlockEngine) -> None:
    gradients, queries = _matrices(queries=2)
    one, other = _score(engine, gradients, queries)
    combined = _score(engine, gradients, (2.0 * queries[0] - 0.5 * queries[1])[None])
    _same(
        (2.0 * one - 0.5 * other)[None],
        combined,
        "It is not linear in the query; if that is meant, declare EngineSpec(linear=False).",
    )


def _edges(engine: BlockEngine) -> None:
    gradients, queries = _matrices()
    _score(engine, np.zeros_like(gradients), queries)
    _score(engine, gradients, np.zeros_like(queries))
    _score(engine, gradients[:1], queries)
    _score(engine, gradients.astype(np.float32), queries)


def _caveats(engine: BlockEngine) -> None:
    gradients, queries = _matrices()
    found = engine.caveats(context_of(MemoryBlock(gradients), queries))
    require(not isinstance(found, str), "caveats must return sentences, not one text.")
    for sentence in found:
        fine = isinstance(sentence, str) and sentence.strip() and sentence.isprintable()
        require(fine, f"{sentence!r} is no sentence on one line.")


def _oracle(engine: BlockEngine, provided: Provided[EngineSpec]) -> None:
    spec = provided.spec
    assert spec.oracle is not None
    oracle = load_object(spec.oracle, provided.owner, f"the oracle of engine {spec.name}")
    settings = validated_options("engine", provided, {})
    gradients, queries = _matrices()
    context = context_of(MemoryBlock(gradients), queries)
    wanted = np.asarray(oracle(gradients, queries, context, settings))
    _same(wanted, _score(engine, gradients, queries), "It disagrees with its own formula.")
