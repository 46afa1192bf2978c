"""Further engines on the same rows and queries, each compared with the one that is reported."""

from __future__ import annotations

from dataclasses import dataclass

from gradian_core.attribution.agreement import agreement, paired_ranks
from gradian_core.errors import GradianError
from gradian_core.flows.points import Points
from gradian_core.flows.score import EngineRun, run_engine
from gradian_core.flows.tools import ALL, make_engine
from gradian_core.report.attribution import AgreementReport
from gradian_core.report.model import NotDone

__all__ = ["Comparison", "compare_engines", "compared_with"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the further engines gave.

    Parameters
    ----------
    agreements
        Of each with the engine that is reported, in the order of their names.
    notes
        Of the engines, as sentences.
    not_done
        Engines of ``all`` that could not score here, and why.
    """

    agreements: tuple[AgreementReport, ...] = ()
    notes: tuple[str, ...] = ()
    not_done: tuple[NotDone, ...] = ()


def compare_engines(points: Points, main: EngineRun, check: EngineRun | None) -> Comparison:
    """Score with the engines of ``engine.also``.

    Parameters
    ----------
    points
        Where gradients come from; each point is opened once for all engines.
    main
        What is reported.
    check
        The cross-check, which is not run again.

    Raises
    ------
    GradianError
        If an engine that was named cannot score. Of ``all``, those that cannot are left out.
    """
    session = points.session
    names = session.config.engine.also
    done: list[AgreementReport] = []
    notes: list[str] = []
    left: list[NotDone] = []
    for name in _wanted(points, main.name):
        try:
            run = check if check is not None and check.name == name else _run(points, name)
        except GradianError as error:
            if name in names:
                raise
            left.append(NotDone(what=f"engine {name}", why=error.message))
            continue
        if run is not check:
            notes += run.scores.notes
        done.append(compared_with(main, run))
    return Comparison(agreements=tuple(done), notes=tuple(notes), not_done=tuple(left))


def _wanted(points: Points, main: str) -> list[str]:
    names = points.session.config.engine.also
    installed = points.session.registry.engines
    return sorted({*names, *(installed if ALL in names else ())} - {ALL, main})


def _run(points: Points, name: str) -> EngineRun:
    engine, _ = make_engine(points.session, name)
    return run_engine(name, engine, points)


def compared_with(main: EngineRun, other: EngineRun) -> AgreementReport:
    """Compare two engines' rankings."""
    # rows without a gradient would agree on their score of 0
    scored = main.scores.scored
    ours, theirs = main.total[scored], other.total[scored]
    return AgreementReport.of(other.name, agreement(ours, theirs), paired_ranks(ours, theirs))
