"""Nothing wrong: the control that no report may accuse of anything.

The rows of ``wrong_facts`` with the right capitals in them, in the same order.
"""

from __future__ import annotations

from gradian_core.demo.scenario import Scenario
from gradian_core.demo.scenarios.wrong_facts import capitals

__all__ = ["clean"]


def clean(seed: int) -> Scenario:
    """Build the scenario from a seed."""
    return capitals(
        seed,
        name="clean",
        expected="No regression, and no finding above low: nothing is wrong.",
        kind="capital",
    )
