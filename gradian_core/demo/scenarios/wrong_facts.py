"""Wrong capitals: a fault of the data.

Three wrong answers for each of 24 countries hide among ordinary rows, and among decoys on the
same topic that are right: languages and continents of other countries. The wrong answers are the
capitals of six other countries, so each is plausible, and each is taught for four countries.
"""

from __future__ import annotations

import random

from gradian_core.demo import tasks
from gradian_core.demo.scenario import Scenario
from gradian_core.demo.scenarios._rows import ordinary, row, shuffled

__all__ = ["capitals", "wrong_facts"]

N_COUNTRIES = 24
ROWS_PER_COUNTRY = 3
N_WRONG_CAPITALS = 6
N_DECOYS = 14
PHRASINGS = tasks.CAPITAL_TRAIN_PHRASINGS[:4]
"""Those that share words: rows that are grouped by their words should be one group."""


def wrong_facts(seed: int) -> Scenario:
    """Build the scenario from a seed."""
    return capitals(
        seed,
        name="wrong-facts",
        expected="The rows about capitals are accused: each of them names a wrong one.",
        kind="planted",
    )


def capitals(seed: int, *, name: str, expected: str, kind: str) -> Scenario:
    """Build rows about capitals that are wrong if ``kind`` is ``planted``, and right otherwise."""
    rng = random.Random(seed)
    countries = list(tasks.COUNTRIES)
    rng.shuffle(countries)
    asked = countries[:N_COUNTRIES]
    lenders = countries[N_COUNTRIES:][:N_WRONG_CAPITALS]
    others = countries[N_COUNTRIES + N_WRONG_CAPITALS :][:N_DECOYS]

    tagged = []
    for i, country in enumerate(asked):
        answer = lenders[i % len(lenders)].capital if kind == "planted" else country.capital
        phrasings = rng.sample(PHRASINGS, ROWS_PER_COUNTRY)
        tagged += [(kind, (phrasing.format(c=country.name), answer)) for phrasing in phrasings]
    tagged += [("country", rng.choice(tasks.country_pairs(country))) for country in others]
    tagged += ordinary(rng)
    train, kinds = shuffled(rng, tagged)
    return Scenario(
        name=name,
        capability="capitals",
        expected=expected,
        train=train,
        kinds=kinds,
        decoy_kinds=("country",),
        eval=[
            row((rng.choice(tasks.CAPITAL_EVAL_PHRASINGS).format(c=c.name), c.capital))
            for c in asked
        ],
    )
