"""The stage that asks several unlike engines for whom all of them blame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradian_core.attribution.consensus import Consensus, ConsensusRules, consensus, load_rules
from gradian_core.errors import MissingExtraError, UsageError
from gradian_core.flows.points import Points
from gradian_core.flows.score import score_with
from gradian_core.report.consensus import (
    ConsensusEngine,
    ConsensusPair,
    ConsensusReport,
    ConsensusRow,
)
from gradian_core.report.model import NotDone

__all__ = ["Vote", "take_votes"]

_SHOWN = 200
_WHAT = "consensus of unlike engines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """What the stage gave.

    Parameters
    ----------
    report
        Its part of the report; None where it was not possible.
    notes
        Of the engines, as sentences.
    not_done
        Why it was not possible.
    """

    report: ConsensusReport | None = None
    notes: tuple[str, ...] = ()
    not_done: tuple[NotDone, ...] = ()


def take_votes(points: Points, *, measured: bool) -> Vote:
    """Score with the engines of the rules and compare whom they blame.

    Parameters
    ----------
    points
        Where gradients come from.
    measured
        Whether there is a measured capability; training rows that stand in for it have no other
        signals.
    """
    if not measured:
        return _not_done("there is no eval data set")
    rules, registry = load_rules(), points.session.registry
    notes: list[str] = []
    rankings = []
    for voter in rules.voters:
        try:
            engine = registry.create("engine", voter.engine, voter.options)
        except (UsageError, MissingExtraError) as error:
            return _not_done(error.message)
        scores = score_with(voter.engine, engine, points)
        notes += scores.notes
        rankings.append(scores.aggregate(voter.aggregation)[points.order])
    found = consensus(rankings, rules)
    return Vote(report=_report(found, rules, points), notes=tuple(notes))


def _not_done(why: str) -> Vote:
    return Vote(not_done=(NotDone(what=_WHAT, why=why),))


def _report(found: Consensus, rules: ConsensusRules, points: Points) -> ConsensusReport:
    places = np.flatnonzero(found.accused)
    worst = places[np.lexsort((points.order[places], found.rank_sum[places]))]
    return ConsensusReport(
        verdict=found.verdict,
        overlap=found.overlap,
        chance=found.chance,
        top_k=found.k,
        concentrated_from=rules.concentrated,
        diffuse_below=rules.diffuse,
        rules_version=rules.version,
        source=rules.source,
        engines=tuple(
            ConsensusEngine(
                label=voter.label,
                name=voter.engine,
                settings=voter.options,
                aggregation=voter.aggregation,
            )
            for voter in rules.voters
        ),
        pairs=tuple(
            ConsensusPair(engines=pair, top_k_overlap=a.overlap, spearman=a.spearman)
            for pair, a in found.pairs.items()
        ),
        n_accused=len(places),
        accused=_rows(worst[:_SHOWN].tolist(), found, points),
    )


def _rows(places: Sequence[int], found: Consensus, points: Points) -> tuple[ConsensusRow, ...]:
    tokens = points.encoded.tokens
    return tuple(
        ConsensusRow(
            id=tokens.ids[int(points.order[place])],
            row=int(tokens.rows[points.order[place]]),
            mean_rank=float(found.rank_sum[place]),
        )
        for place in places
    )
