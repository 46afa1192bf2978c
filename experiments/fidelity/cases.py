"""One fine-tune to be diagnosed: rows, eval items, recipe, and the truth about every row."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.fidelity.rows import Row, as_row, benign
from gradian_core.demo.finetune import TARGET_MODULES
from gradian_core.demo.tasks import Pair

__all__ = ["BENIGN", "FORMAT", "PLANTED", "TOPICAL", "Case", "Recipe", "build"]

PLANTED = "planted"
"""A fault."""
TOPICAL = "topical"
"""A right answer to a question of the planted rows' templates."""
FORMAT = "format"
"""A right answer on another topic, in the form of the planted rows' answers."""
BENIGN = "benign"
"""A row of the tasks that the fine-tune is for."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a case is trained; the defaults are the sane recipe of the benchmark."""

    epochs: int = 6
    lr: float = 2e-3
    batch_size: int = 8
    r: int = 8
    target_modules: tuple[str, ...] = TARGET_MODULES

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of :func:`gradian_core.demo.finetune.finetune`."""
        return {
            "epochs": self.epochs,
            "lr": self.lr,
            "batch_size": self.batch_size,
            "r": self.r,
            "alpha": 2 * self.r,
            "target_modules": list(self.target_modules),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One scenario with one seed.

    Parameters
    ----------
    train
        Training rows.
    kinds
        The truth about each of them: ``planted``, ``topical``, ``format`` or ``benign``.
    eval
        Eval rows with right answers.
    metric
        How an answer is judged.
    recipe
        How it is trained.
    seed
        Of data and training.
    """

    train: tuple[Row, ...]
    kinds: tuple[str, ...]
    eval: tuple[Row, ...]
    metric: str
    recipe: Recipe
    seed: int

    def places(self, kind: str) -> list[int]:
        """Return the row numbers of one kind."""
        return [i for i, name in enumerate(self.kinds) if name == kind]


def build(
    rng: random.Random,
    parts: Mapping[str, Iterable[Pair]],
    items: Sequence[Pair],
    *,
    metric: str,
    recipe: Recipe,
    seed: int,
) -> Case:
    """Add the benign rows and shuffle."""
    tagged = [(kind, as_row(pair)) for kind, pairs in parts.items() for pair in pairs]
    tagged += [(BENIGN, as_row(pair)) for pair in benign(rng)]
    rng.shuffle(tagged)
    return Case(
        train=tuple(row for _, row in tagged),
        kinds=tuple(kind for kind, _ in tagged),
        eval=tuple(as_row(pair) for pair in items),
        metric=metric,
        recipe=recipe,
        seed=seed,
    )
