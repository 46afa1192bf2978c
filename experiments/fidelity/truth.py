"""Are the planted rows to blame? Retrain without them, and without as many other tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.fidelity.cases import PLANTED
from experiments.fidelity.runs import fine_tuned
from experiments.fidelity.scenarios import SCENARIOS
from gradian_core.retraining.arms import equal_mass

__all__ = ["ATTRIBUTABLE", "Truth", "truth"]

ATTRIBUTABLE = 0.2
"""Effect below which planted rows are not called the cause."""
SEEDS = 2
DRAWS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Accuracies of the arms, one per training seed (and draw).

    Parameters
    ----------
    scenario, seed
        Which run.
    full, without_planted, without_random
        Accuracies. All arms take the same number of steps.
    """

    scenario: str
    seed: int
    full: tuple[float, ...]
    without_planted: tuple[float, ...]
    without_random: tuple[float, ...]

    @property
    def effect(self) -> float:
        """Accuracy without the planted rows, over that without random ones."""
        return float(np.mean(self.without_planted) - np.mean(self.without_random))

    @property
    def attributable(self) -> bool:
        """Whether the planted rows are the cause."""
        return self.effect >= ATTRIBUTABLE

    def values(self) -> dict[str, Any]:
        """Return it for the record."""
        return {**asdict(self), "effect": self.effect, "attributable": self.attributable}


def truth(scenario: str, seed: int, cache: Path) -> Truth:
    """Retrain the arms of one run; those that were trained before come from the cache."""
    case = SCENARIOS[scenario].case(seed)
    planted = case.places(PLANTED)
    words = np.array([len(row["completion"].split()) for row in case.train])
    draws = [sorted(equal_mass(words, planted, draw)) for draw in range(DRAWS)]

    def accuracy(without: Sequence[int], training_seed: int) -> float:
        return fine_tuned(case, cache, without=without, seed=training_seed).measured().tuned

    seeds = [seed + 100 * i for i in range(SEEDS)]
    return Truth(
        scenario=scenario,
        seed=seed,
        full=tuple(accuracy([], s) for s in seeds),
        without_planted=tuple(accuracy(planted, s) for s in seeds),
        without_random=tuple(accuracy(rows, s) for rows in draws for s in seeds),
    )
