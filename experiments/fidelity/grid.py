"""Which engines are run, with which signals, and which rankings are read from their scores.

A *cell* is one pass of an engine: its ``(q, n)`` scores are kept, so that aggregations, and the
paths that average several cells, are chosen without running anything again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.attribution.aggregate import AGGREGATIONS, aggregate
from gradian_core.attribution.agreement import average_ranks

__all__ = ["BASELINES", "CELLS", "TEXT", "VOTERS", "Cell", "Ranking", "rankings"]

Matrix = NDArray[np.floating[Any]]

ALPHAS = (0.25, 0.5, 0.75, 1.0)
TEXT = ("tfidf", "bm25")
BASELINES = (*TEXT, "repsim", "loss", "lossdrop", "gradnorm", "random")
"""What needs no gradient of a query; ``docs/fidelity.md`` says what each is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One pass of an engine.

    Parameters
    ----------
    name
        Key under which its scores are kept.
    engine, options
        The engine.
    signal
        The query signal.
    """

    name: str
    engine: str
    signal: str
    options: dict[str, Any] = field(default_factory=dict)


def _path(form: str, signal: str, alpha: float) -> Cell:
    return Cell(
        name=f"{form}@{alpha:g}/{signal}",
        engine="path",
        signal=signal,
        options={"form": form, "alphas": [alpha], "signal": signal},
    )


CELLS: tuple[Cell, ...] = (
    *(
        Cell(name=f"{engine}/{signal}", engine=engine, signal=signal)
        for engine in ("datainf", "graddot")
        for signal in ("contrastive", "target", "divergence")
    ),
    *(_path(form, "target", a) for form in ("cosine", "adam", "acos") for a in ALPHAS),
    *(_path(form, "divergence", a) for form in ("cosine", "adam", "acos") for a in (0.5, 1.0)),
    *(_path(form, "contrastive", a) for form in ("cosine", "acos") for a in (0.5, 1.0)),
)

VOTERS = ("cosine@1/target max", "adam@0.5/divergence top3", "path-acos/target max")
"""Three engines of different scale, query and preconditioner, whose agreement is the consensus."""
RANK_SUM = "rank-sum of the consensus"
RANK_SUM_2 = "rank-sum of path-acos and adam@0.5/divergence"

Ranking = NDArray[np.float64]


def rankings(cells: Mapping[str, Matrix]) -> dict[str, Ranking]:
    """Return ``(n,)`` harm of every row (high is harmful) by every way to read the scores.

    Parameters
    ----------
    cells
        ``(q, n)`` scores by cell or baseline; the sign is that of ``gradian_core.protocols``.
    """
    wide: dict[str, Matrix] = {k: v for k, v in cells.items() if k not in BASELINES}
    for form in ("cosine", "adam", "acos"):
        # each cell of path has mean size 1 already, as the engine averages them
        wide[f"path-{form}/target"] = np.mean(
            [cells[f"{form}@{alpha:g}/target"] for alpha in ALPHAS], axis=0
        )
    found = {
        f"{name} {how}": -aggregate(scores, how)
        for name, scores in wide.items()
        for how in AGGREGATIONS
    }
    for name in BASELINES:
        if name in cells:
            found[name] = -aggregate(cells[name], "max")
    ranks = {name: average_ranks(found[name]) for name in VOTERS}
    found[RANK_SUM] = np.mean(list(ranks.values()), axis=0)
    found[RANK_SUM_2] = np.mean([ranks[VOTERS[1]], ranks[VOTERS[2]]], axis=0)
    return found
