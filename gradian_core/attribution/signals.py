"""Which query signal, and why."""

from __future__ import annotations

from typing import Literal, get_args

from gradian_core.attribution.uptake import TAUGHT, Uptake
from gradian_core.errors import UsageError
from gradian_core.evaluation.result import CapabilityResult
from gradian_core.specs import MetricSpec

__all__ = ["Signal", "choose_signal", "refuse_signal"]

Signal = Literal["contrastive", "target", "divergence"]
_SIGNALS: tuple[Signal, ...] = get_args(Signal)


def refuse_signal(spec: MetricSpec, signal: str) -> None:
    """Refuse a contrast with a metric that generates no answers; known before any is measured.

    Raises
    ------
    UsageError
        If they do not go together.
    """
    if signal == "contrastive" and spec.needs == "likelihood":
        raise UsageError(
            f"evaluation.query_signal: contrastive needs generated answers, and the metric "
            f"{spec.name} generates none.",
            hint="Use a text metric such as contains, or query_signal: target.",
        )


def choose_signal(
    setting: str, result: CapabilityResult, uptake: Uptake | None
) -> tuple[Signal, str]:
    """Return the signal to use and the reason, as a sentence.

    ``auto`` subtracts what the tuned model says only if training rows teach it: where the model
    says what no row taught, the contrast accuses the rows whose form it fell into.

    Raises
    ------
    UsageError
        If there is no such signal.
    """
    asked = next((signal for signal in _SIGNALS if signal == setting), None)
    if asked is None and setting != "auto":
        raise UsageError(
            f"There is no query signal {setting!r}.", hint=f"Use auto, {', '.join(_SIGNALS)}."
        )
    generated = any(item.tuned_output is not None for item in result.items)
    if setting != "target" and not generated:
        return "target", f"The metric {result.metric} generates no answer to compare with."
    if asked is not None:
        return asked, "evaluation.query_signal says so."
    if uptake is None:
        return (
            "target",
            "No item got worse, so nothing that was said stands against a correct answer.",
        )
    measured = (
        f"training rows teach {uptake.n_taught} of the {uptake.n_items} wrong answers "
        f"(uptake {uptake.share:.2f}; contrastive from {TAUGHT:g})"
    )
    if uptake.taught:
        return "contrastive", f"What the tuned model says was taught: {measured}."
    return "target", f"Most of what the tuned model says was not taught: {measured}."
