"""Good rows, twelve epochs, far too high a learning rate: a fault of the setup.

No row is wrong, and none is about the capability, which is forgotten.
"""

from __future__ import annotations

import random

from gradian_core.demo import tasks
from gradian_core.demo.scenario import Scenario
from gradian_core.demo.scenarios._rows import ordinary, row, shuffled

__all__ = ["twelve_epochs"]

N_COUNTRIES = 24


def twelve_epochs(seed: int) -> Scenario:
    """Build the scenario from a seed."""
    rng = random.Random(seed)
    train, kinds = shuffled(rng, ordinary(rng))
    asked = rng.sample(tasks.COUNTRIES, N_COUNTRIES)
    return Scenario(
        name="twelve-epochs",
        capability="capitals",
        expected="The learning rate and the epochs are to blame, and no row.",
        train=train,
        kinds=kinds,
        decoy_kinds=(),
        eval=[
            row((rng.choice(tasks.CAPITAL_EVAL_PHRASINGS).format(c=c.name), c.capital))
            for c in asked
        ],
        settings={"epochs": 12, "lr": 1e-2},
    )
