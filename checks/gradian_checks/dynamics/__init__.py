"""Checks of a run's course, as its trainer logged it."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import CheckSpec

__all__ = ["CORE", "FURTHER", "gradian_checks"]

CORE = (
    ("always_clipping", "Gradient norm pinned at the clip threshold", ("log",)),
    ("grad_norm_explosion", "Gradient-norm blowup", ("log",)),
    ("loss_plateau", "Loss barely moved", ("log",)),
    ("loss_spike", "Sudden loss spikes", ("log",)),
    ("lr_schedule_incomplete", "LR schedule did not decay", ("log",)),
    ("nan_loss", "NaN or inf loss", ("log",)),
    ("overfitting", "Train loss falling while eval loss rises", ("log",)),
    ("too_few_steps", "Barely any logged steps", ("log",)),
)
"""``(name, summary, needs)`` of the checks that the reference documentation lists."""

FURTHER = (
    ("initial_loss_too_high", "First loss worse than chance", ("log",)),
    ("loss_scale_mismatch", "Logged training loss on another scale than eval loss", ("log",)),
    ("lr_rewarm_on_resume", "Learning rate that jumps up again on resume", ("log",)),
    ("no_loss_logged", "No training loss in the log", ("log",)),
)
"""``(name, summary, needs)`` of the checks beyond them."""


@hookimpl
def gradian_checks() -> Iterator[CheckSpec]:
    """Declare the checks, those of the core list first."""
    for declared in (CORE, FURTHER):
        for name, summary, needs in declared:
            yield CheckSpec(
                name=f"dynamics.{name}",
                summary=summary,
                factory=f"gradian_checks.dynamics.{name}:{name}",
                needs=needs,
                core=declared is CORE,
            )
