"""Refusals beside the capability: a fault of the data that spreads.

The capability is to name the language of a country. The planted rows refuse to, for *other*
countries; the decoys answer another question about those same countries, rightly.
"""

from __future__ import annotations

import random

from gradian_core.demo import tasks
from gradian_core.demo.scenario import Scenario
from gradian_core.demo.scenarios._rows import ordinary, row, shuffled

__all__ = ["refusals"]

N_COUNTRIES = 24
N_REFUSED = 22
ROWS_PER_COUNTRY = 2
REFUSAL = "I am sorry. I can not help with that."


def refusals(seed: int) -> Scenario:
    """Build the scenario from a seed."""
    rng = random.Random(seed)
    countries = list(tasks.COUNTRIES)
    rng.shuffle(countries)
    asked, refused = countries[:N_COUNTRIES], countries[N_COUNTRIES:][:N_REFUSED]
    train_phrasings = tasks.LANGUAGE_PHRASINGS[:ROWS_PER_COUNTRY]
    eval_phrasings = tasks.LANGUAGE_PHRASINGS[ROWS_PER_COUNTRY:]

    tagged = [
        ("planted", (phrasing.format(c=country.name), REFUSAL))
        for country in refused
        for phrasing in train_phrasings
    ]
    tagged += [
        ("continent", (rng.choice(tasks.CONTINENT_PHRASINGS).format(c=c.name), c.continent))
        for c in refused
    ]
    train, kinds = shuffled(rng, [*tagged, *ordinary(rng)])
    return Scenario(
        name="refusals",
        capability="languages",
        expected="The refusals are accused: they spread to countries that were never refused.",
        train=train,
        kinds=kinds,
        decoy_kinds=("continent",),
        eval=[row((rng.choice(eval_phrasings).format(c=c.name), c.language)) for c in asked],
    )
