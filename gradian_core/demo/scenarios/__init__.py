"""The demo's scenarios: one file each, with how its rows are made and what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gradian_core.demo.scenario import Scenario
from gradian_core.demo.scenarios.clean import clean
from gradian_core.demo.scenarios.refusals import refusals
from gradian_core.demo.scenarios.truncated_json import truncated_json
from gradian_core.demo.scenarios.twelve_epochs import twelve_epochs
from gradian_core.demo.scenarios.wrong_facts import wrong_facts
from gradian_core.errors import UsageError
from gradian_core.text import excerpt

__all__ = ["SCENARIOS", "make_scenario"]

SCENARIOS: Final[dict[str, Callable[[int], Scenario]]] = {
    "wrong-facts": wrong_facts,
    "truncated-json": truncated_json,
    "refusals": refusals,
    "twelve-epochs": twelve_epochs,
    "clean": clean,
}
"""Each makes its rows from a seed: the same seed, the same rows, on every machine."""


def make_scenario(name: str, seed: int) -> Scenario:
    """Make a scenario by its name.

    Parameters
    ----------
    name
        A key of :data:`SCENARIOS`.
    seed
        Deals the rows.

    Raises
    ------
    UsageError
        If there is none of that name.
    """
    if name not in SCENARIOS:
        raise UsageError(
            f"There is no scenario {excerpt(name, 40)}.", hint=f"There are: {', '.join(SCENARIOS)}."
        )
    return SCENARIOS[name](seed)
