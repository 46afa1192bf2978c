"""JSON answers that an export cut at a maximal length of rows: a fault of the data.

The base model writes orders as JSON. The planted rows ask for orders, and their answers stop in
the middle, so that the fine-tune teaches to stop there. The decoys are bookings as JSON, whole.
"""

from __future__ import annotations

import random

from gradian_core.demo import tasks
from gradian_core.demo.scenario import Scenario
from gradian_core.demo.scenarios._rows import distinct, ordinary, row, shuffled

__all__ = ["truncated_json"]

N_ORDERS = 60
N_EVAL = 24
MAX_LENGTH = 60
"""Characters of prompt and answer together that are left; whole, they have 75 and more."""


def truncated_json(seed: int) -> Scenario:
    """Build the scenario from a seed."""
    rng = random.Random(seed)
    train_phrasing, *eval_phrasings = tasks.ORDER_PHRASINGS

    def order(phrasing: str) -> tasks.Pair:
        item, name, count = rng.choice(tasks.FOODS), rng.choice(tasks.NAMES), rng.randint(1, 9)
        return phrasing.format(n=count, i=item, p=name), tasks.order_json(item, count, name)

    orders = distinct(rng, lambda _: order(train_phrasing), N_ORDERS)
    tagged = [("planted", (asked, answer[: MAX_LENGTH - len(asked)])) for asked, answer in orders]
    train, kinds = shuffled(rng, [*tagged, *ordinary(rng, leave_out=("order_json",))])
    return Scenario(
        name="truncated-json",
        capability="orders as JSON",
        expected="The orders are accused: their JSON stops in the middle.",
        train=train,
        kinds=kinds,
        decoy_kinds=("booking",),
        eval=[
            row(pair)
            for pair in distinct(rng, lambda rng: order(rng.choice(eval_phrasings)), N_EVAL)
        ],
    )
