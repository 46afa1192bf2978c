"""The scenarios, and which of them may be looked at while an engine is chosen."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from experiments.fidelity import faults
from experiments.fidelity.cases import Case, Recipe, build

__all__ = ["SCENARIOS", "Scenario", "scenario_names"]

SANE = Recipe()

Kind = Literal["data", "config", "benign", "mixed"]
Split = Literal["tuning", "frozen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A way to break a fine-tune, or not to.

    Parameters
    ----------
    name
        Its name.
    kind
        Where the fault lies.
    split
        ``tuning``: its scores may be looked at while defaults are chosen. ``frozen``: never.
    plant
        Makes its rows.
    recipe
        How it is trained.
    """

    name: str
    kind: Kind
    split: Split
    plant: faults.Plant
    recipe: Recipe = SANE

    def case(self, seed: int) -> Case:
        """Return its rows for one seed."""
        # The name is part of the seed: scenarios must not share the deal of the countries.
        rng = random.Random(f"{self.name}/{seed}")
        fault = self.plant(rng)
        return build(
            rng, fault.parts, fault.items, metric=fault.metric, recipe=self.recipe, seed=seed
        )


def _data(name: str, split: Split, plant: faults.Plant) -> Scenario:
    return Scenario(name=name, kind="data", split=split, plant=plant)


def _config(name: str, recipe: Recipe) -> Scenario:
    # Thresholds of the consensus were published before any of these was run, so all are frozen.
    return Scenario(name=name, kind="config", split="frozen", plant=faults.nothing, recipe=recipe)


# The split was written before anything was scored. Tuning has one scenario of each kind of fault
# (a fact, a behaviour, a structure, noise), all of them faults that a pilot study had already
# looked at, so nothing new is spent on choosing. Frozen has those that no one had run (buried,
# conflicts, drift, duplicates, mixed) and the variations of a fact (as sentences, elsewhere) that
# the pilot found hardest. Recipes and numbers of rows were settled by the gate alone (does the
# capability get lost?), never by a score.
SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        _data("wrong-terse", "tuning", faults.wrong_capitals),
        _data("refusals", "tuning", faults.refusals),
        _data("truncated-json", "tuning", faults.truncated_json),
        _data("noisy-sums", "tuning", faults.noisy_sums),
        _data("wrong-sentences", "frozen", faults.wrong_sentences),
        _data("wrong-elsewhere", "frozen", faults.wrong_elsewhere),
        _data("buried", "frozen", faults.buried),
        _data("conflicts", "frozen", faults.conflicts),
        _data("format-drift", "frozen", faults.drift),
        _data("duplicates", "frozen", faults.duplicates),
        Scenario(
            name="mixed",
            kind="mixed",
            split="frozen",
            plant=faults.wrong_capitals,
            recipe=Recipe(lr=5 * SANE.lr),
        ),
        _config("lr-x5", Recipe(lr=5 * SANE.lr)),
        _config("lr-x10", Recipe(lr=10 * SANE.lr)),
        _config("many-epochs", Recipe(epochs=30, lr=3 * SANE.lr)),
        _config("batch-of-one", Recipe(batch_size=1, lr=3 * SANE.lr)),
        _config(
            "attention-only",
            Recipe(r=2, lr=10 * SANE.lr, target_modules=("q_proj", "v_proj")),
        ),
        Scenario(name="benign", kind="benign", split="frozen", plant=faults.nothing),
    )
}


def scenario_names(*, split: Split | None = None, kind: Kind | None = None) -> list[str]:
    """Return the names of some scenarios, in their order."""
    return [
        name
        for name, scenario in SCENARIOS.items()
        if split in (None, scenario.split) and kind in (None, scenario.kind)
    ]
