"""Whether unlike engines blame the same rows: the mark of a cause that lies in the data.

A bad group of rows is found by any sound engine. A bad setup makes all rows look guilty, and each
engine then picks others. So it is not what one engine says that tells the two apart, but how far
several agree that share neither the point at which they look, nor the form of the query, nor the
preconditioner.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradian_core.attribution.agreement import Agreement, agreement, average_ranks, membership

__all__ = ["Consensus", "ConsensusRules", "Voter", "consensus", "load_rules"]

Verdict = Literal["concentrated", "undetermined", "diffuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """One of the engines.

    Parameters
    ----------
    label
        What sets it apart, for the report.
    engine, options
        Name of the engine, and its options.
    aggregation
        How its scores of the items become one.
    """

    label: str
    engine: str
    options: dict[str, Any]
    aggregation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusRules:
    """Engines and thresholds, which belong together; in ``consensus.json``.

    Parameters
    ----------
    version
        Of this set; changed with anything in it.
    concentrated, diffuse
        Mean overlap from which, and below which, the verdict is so.
    fewest_top_rows
        With fewer rows in the top, an overlap says nothing.
    top_share
        Share of the rows that counts as the top.
    source
        Where the thresholds come from, as a sentence.
    voters
        The engines.
    """

    version: int
    concentrated: float
    diffuse: float
    fewest_top_rows: int
    top_share: float
    source: str
    voters: tuple[Voter, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Consensus:
    """What the engines have in common, over *n* rows.

    Parameters
    ----------
    pairs
        Agreement of each pair, by the places of the two.
    overlap
        Mean of the pairs' overlaps, in [0, 1].
    chance
        What unrelated rankings would have on average.
    k
        Rows in the top.
    accused
        ``(n,)`` True where a row is in the top of every engine.
    rank_sum
        ``(n,)`` mean rank over the engines: 1 is the most harmful.
    verdict
        ``concentrated``, ``undetermined`` or ``diffuse``.
    """

    pairs: dict[tuple[int, int], Agreement]
    overlap: float
    chance: float
    k: int
    accused: NDArray[np.bool_]
    rank_sum: NDArray[np.float64]
    verdict: Verdict


def load_rules() -> ConsensusRules:
    """Read ``consensus.json``."""
    raw = json.loads((files(__package__) / "consensus.json").read_text(encoding="utf-8"))
    voters = tuple(Voter(**voter) for voter in raw.pop("engines"))
    return ConsensusRules(**raw, voters=voters)


def consensus(rankings: Sequence[NDArray[np.floating[Any]]], rules: ConsensusRules) -> Consensus:
    """Compare the rankings of several engines.

    Parameters
    ----------
    rankings
        ``(n,)`` aggregated scores of each engine, of rows that have a gradient; low is harmful.
    rules
        Thresholds.

    Raises
    ------
    ValueError
        If there are fewer than two rankings, or they are not comparable.
    """
    if len(rankings) < 2:
        raise ValueError("a consensus needs at least two rankings")
    n = len(rankings[0])
    k = max(1, round(n * rules.top_share))
    pairs = {
        (i, j): agreement(rankings[i], rankings[j], k)
        for i, j in combinations(range(len(rankings)), 2)
    }
    overlap = float(np.mean([pair.overlap for pair in pairs.values()]))
    verdict: Verdict = "undetermined"
    if k >= rules.fewest_top_rows and overlap >= rules.concentrated:
        verdict = "concentrated"
    elif k >= rules.fewest_top_rows and overlap < rules.diffuse:
        verdict = "diffuse"
    return Consensus(
        pairs=pairs,
        overlap=overlap,
        chance=k / n,
        k=k,
        # a row at the border whose rank is shared is in no top for sure
        accused=np.all([membership(scores, k) == 1.0 for scores in rankings], axis=0),
        rank_sum=np.asarray(np.mean([average_ranks(r) for r in rankings], axis=0), np.float64),
        verdict=verdict,
    )
