"""From an accusation to a proof, or to the lack of one: retrain without the accused rows."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradian_core.config.models import Config, TrainSection
from gradian_core.data.cache import encode_cached
from gradian_core.errors import UsageError
from gradian_core.files import write_atomic
from gradian_core.flows.session import Session
from gradian_core.progress import NoProgress, Progress
from gradian_core.report.model import Report
from gradian_core.retraining.accused import Accused
from gradian_core.retraining.arms import ACCUSED, FULL, LOW_RATE, Arm, equal_mass
from gradian_core.retraining.effect import Effect, measure_effect
from gradian_core.retraining.result import ArmResult, Counterfactual, RemovalTruth
from gradian_core.retraining.runner import ArmRun, Runner
from gradian_core.retraining.settings import repeated_settings, total_steps

__all__ = ["counterfactual"]

LOW_RATE_FACTOR = 0.25
_RECOVERS = 0.9
"""Share of the whole set's recovery that a smaller set must reach to suffice."""


def counterfactual(
    config: Config,
    report: Report,
    accused: Accused,
    *,
    out: Path,
    seeds: int = 2,
    draws: int = 2,
    smallest: bool = False,
    truth: Collection[str] = (),
    keep: bool = False,
    progress: Progress | None = None,
) -> Counterfactual:
    """Retrain with and without the accused rows, and with as many tokens of random rows left out.

    Every arm has its own adapter for each seed, the same number of steps, and the same order of
    the rows that it shares with the others. What was done before in ``out`` is not done again.

    Parameters
    ----------
    config
        That of the report, with the run's settings in section ``train`` where the run folder
        does not tell them.
    report
        The report that accuses.
    accused
        The rows to leave out.
    out
        Folder for the result and the retrainings.
    seeds
        Retrainings of each arm, at least 2.
    draws
        Random sets of rows, at least 1.
    smallest
        Also look for the smallest set of accused rows that suffices, by halving.
    truth
        Ids of the rows known to be at fault, for precision and recall.
    keep
        Keep the adapters.
    progress
        Where to report; silent if None.

    Raises
    ------
    GradianError
        With the exit code and the words for the user; see the parts.
    """
    show = progress or NoProgress()
    session = Session(config, show)
    if session.eval_dataset is None:
        raise UsageError(
            "A counterfactual needs the eval data that describe the capability.",
            hint="Pass --config with the config of the report, or --eval-dataset.",
        )
    if seeds < 2 or draws < 1:
        raise UsageError(
            f"{seeds} seeds and {draws} random sets do not tell scatter from effect.",
            hint="At least 2 seeds and 1 random set are needed.",
        )
    accused.refuse_other_data(session.dataset, report)
    settings, sources = repeated_settings(config.train, session.adapter_info, session.run)
    mass = _mass(session, settings)
    steps = _steps(session, settings, int((mass > 0).sum()))
    arms = [
        Arm(name=FULL),
        Arm(name=ACCUSED, dropped=accused.rows),
        *(
            Arm(
                name=f"without random {draw + 1}",
                dropped=equal_mass(mass, accused.rows, config.seed + draw),
            )
            for draw in range(draws)
        ),
        Arm(name=LOW_RATE, rate_factor=LOW_RATE_FACTOR),
    ]
    # the adapter that was accused has a seed of its own: the verdict must hold for others
    wanted = [config.seed + 1 + number for number in range(seeds)]
    runner = Runner(session, settings, steps=steps, out=out / "arms", keep=keep)
    work = _Work(runner, wanted, len(arms) * seeds, show, session)
    done = {arm.name: work.all_seeds(arm) for arm in arms}
    effect = _effect(done, draws)
    few = None
    if smallest and effect.verdict == "proven":
        few = _smallest(accused, report, done, work)
    used = {arm.name: arm for arm in [*arms, *work.further]}
    result = Counterfactual(
        capability=report.capability.name if report.capability else "capability",
        metric=config.evaluation.metric,
        n_items=len(session.eval_dataset),
        accused=accused.described,
        base=float(done[FULL][0].base.mean()),
        seeds=tuple(wanted),
        steps=steps,
        arms=tuple(
            ArmResult(
                name=name,
                n_dropped=len(used[name].dropped),
                tokens_dropped=int(mass[list(used[name].dropped)].sum()),
                learning_rate=settings.learning_rate * used[name].rate_factor,
                scores=tuple(float(run.tuned.mean()) for run in runs),
            )
            for name, runs in done.items()
        ),
        lost=effect.lost,
        effect=effect.effect,
        standard_error=effect.standard_error,
        share=effect.share,
        verdict=effect.verdict,
        smallest=few,
        truth=_truth(accused, session, truth),
        settings=settings.model_dump(mode="json", exclude={"output_dir", "base_model"}),
        sources=sources,
        notes=_notes(done, effect, sources, report),
    )
    out.mkdir(parents=True, exist_ok=True)
    body = result.model_dump(mode="json")
    write_atomic(out / "counterfactual.json", json.dumps(body, indent=2, sort_keys=True) + "\n")
    write_atomic(out / "counterfactual.md", result.markdown())
    return result


class _Work:
    """Goes through the retrainings, and says how long it takes."""

    def __init__(
        self, runner: Runner, seeds: Sequence[int], total: int, progress: Progress, session: Session
    ) -> None:
        self._runner, self._seeds = runner, seeds
        self._left = total
        self._progress = progress
        self._seconds: float | None = None
        self.further: list[Arm] = []
        once = _recorded_seconds(session)
        about = f", about {_span(once * total)} going by the run's own log" if once else ""
        progress.message(f"{total} fine-tunes{about}; those done before are not done again.")

    def all_seeds(self, arm: Arm) -> list[ArmRun]:
        return [self._one(arm, seed) for seed in self._seeds]

    def _one(self, arm: Arm, seed: int) -> ArmRun:
        started = time.monotonic()
        run = self._runner.run(arm, seed)
        self._left -= 1
        if not run.found:
            if self._seconds is None and self._left > 0:
                left = (time.monotonic() - started) * self._left
                self._progress.message(f"{self._left} fine-tunes are left: about {_span(left)}.")
            self._seconds = time.monotonic() - started
        return run


def _recorded_seconds(session: Session) -> float | None:
    log = session.run.log if session.run is not None else None
    known = [
        float(record["train_runtime"])
        for record in (log.records if log is not None else ())
        if isinstance(record.get("train_runtime"), int | float)
    ]
    return known[-1] if known else None


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _mass(session: Session, settings: TrainSection) -> NDArray[np.int64]:
    tokens = encode_cached(
        session.dataset,
        session.tokenizer,
        max_seq_length=settings.max_seq_length,
        supervise="all",
        cache_dir=session.cache,
    ).tokens
    # rows without a target are not trained on
    return np.where(tokens.supervised_counts > 0, tokens.lengths, 0)


def _steps(session: Session, settings: TrainSection, rows: int) -> int:
    asked = settings.extra.get("max_steps")
    if isinstance(asked, int) and asked > 0:
        return asked
    log = session.run.log if session.run is not None else None
    planned = log.max_steps if log is not None else None
    if planned and "num_train_epochs" not in session.config.train.model_fields_set:
        return planned
    return total_steps(rows, settings)


def _effect(done: dict[str, list[ArmRun]], draws: int) -> Effect:
    def stacked(name: str) -> NDArray[np.float64]:
        return np.stack([run.tuned for run in done[name]])

    return measure_effect(
        done[FULL][0].base,
        stacked(FULL),
        stacked(ACCUSED),
        np.stack([stacked(f"without random {draw + 1}") for draw in range(draws)]),
    )


def _smallest(
    accused: Accused,
    report: Report,
    done: dict[str, list[ArmRun]],
    work: _Work,
) -> int | None:
    """Halve the accused rows, the least harmful first to be spared, while it suffices."""
    ranked = accused.by_harm(report)
    full = float(np.mean([run.tuned.mean() for run in done[FULL]]))
    whole = float(np.mean([run.tuned.mean() for run in done[ACCUSED]])) - full
    best, size = None, len(ranked) // 2
    while size >= 1:
        arm = Arm(name=f"without the worst {size}", dropped=frozenset(ranked[:size]))
        work.further.append(arm)
        done[arm.name] = work.all_seeds(arm)
        gain = float(np.mean([run.tuned.mean() for run in done[arm.name]])) - full
        if gain < _RECOVERS * whole:
            break
        best, size = size, size // 2
    return best


def _truth(accused: Accused, session: Session, known: Collection[str]) -> RemovalTruth | None:
    if not known:
        return None
    places = {example.id: place for place, example in enumerate(session.dataset)}
    strange = [name for name in known if name not in places]
    if strange:
        raise UsageError(
            f"--truth: there is no training row {strange[0]} ({len(strange)} of {len(known)}).",
            hint="Give example ids as in scores.csv, one a line.",
        )
    at_fault = {places[name] for name in known}
    hits = len(at_fault & accused.rows)
    return RemovalTruth(
        n_known=len(at_fault), precision=hits / len(accused.rows), recall=hits / len(at_fault)
    )


def _notes(
    done: dict[str, list[ArmRun]], effect: Effect, sources: dict[str, str], report: Report
) -> tuple[str, ...]:
    def mean(name: str) -> float:
        return float(np.mean([run.tuned.mean() for run in done[name]]))

    notes = []
    full, gain = mean(FULL), mean(ACCUSED) - mean(FULL)
    slower = mean(LOW_RATE) - full
    if effect.lost > 0 and slower >= gain > 0:
        notes.append(
            f"A learning rate of a quarter brings back as much with all rows in place "
            f"({slower:+.3f} against {gain:+.3f}): look at the setup as well."
        )
    guessed = sorted(name for name, source in sources.items() if source == "default")
    if guessed:
        notes.append(
            f"Not known of the original run, so Gradian's defaults were used: {', '.join(guessed)}."
        )
    before = report.capability.tuned if report.capability is not None else None
    if before is not None and abs(full - before) > 0.2:
        notes.append(
            f"Retraining on all rows gives {full:.3f}, the adapter of the report {before:.3f}: "
            "its settings are not the ones that were repeated, or seeds differ that much."
        )
    return tuple(notes)
