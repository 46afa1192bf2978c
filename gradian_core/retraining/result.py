"""What a counterfactual showed: ``counterfactual.json`` and ``counterfactual.md``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from gradian_core.report.base import JsonObject, Number, Part, Text
from gradian_core.retraining.arms import ACCUSED
from gradian_core.retraining.effect import ERRORS_NEEDED, SHARE_NEEDED, Verdict
from gradian_core.text import md_cell

__all__ = ["ArmResult", "Counterfactual", "RemovalTruth"]


class ArmResult(Part):
    """The retrainings of one arm."""

    name: Text
    """What was left out."""
    n_dropped: int
    """Rows that it leaves out."""
    tokens_dropped: int
    """Tokens of them."""
    learning_rate: float
    """Peak learning rate."""
    scores: tuple[float, ...]
    """Mean score of the capability, one a seed."""

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return sum(self.scores) / len(self.scores)


class RemovalTruth(Part):
    """The accused rows against those that are known to be at fault."""

    n_known: int
    """Rows known to be at fault."""
    precision: float
    """Share of the accused rows that are."""
    recall: float
    """Share of those rows that are accused."""


class Counterfactual(Part):
    """A verdict put to the test by retraining."""

    schema_version: Literal["1.0"] = "1.0"
    """Version of this format."""
    capability: Text
    """Name of the capability."""
    metric: Text
    """Metric of the scores."""
    n_items: int
    """Eval items."""
    accused: tuple[Text, ...]
    """What was accused: labels of clusters, or a file of ids."""
    base: float
    """Mean score of the base model."""
    seeds: tuple[int, ...]
    """Seeds of the retrainings; an arm has one for each."""
    steps: int
    """Optimiser steps of every retraining."""
    arms: tuple[ArmResult, ...]
    """All arms, also those that speak against the verdict."""
    lost: float
    """Base minus the arm on all rows."""
    effect: float
    """Mean without the accused rows minus mean without random ones of the same weight."""
    standard_error: float
    """Of the effect."""
    share: Number
    """Effect as a share of what was lost; null where nothing was."""
    verdict: Verdict
    """``proven``, ``not proven`` or ``not reproduced``."""
    smallest: int | None = None
    """Size of the smallest set of accused rows, worst first, that brings back as much; null if it
    was not looked for or none does."""
    truth: RemovalTruth | None = None
    """Null where no truth was given."""
    settings: JsonObject = Field(default_factory=dict)
    """Settings of the fine-tune that was repeated."""
    sources: JsonObject = Field(default_factory=dict)
    """Where each of them comes from."""
    notes: tuple[Text, ...] = ()
    """What limits it, as sentences."""

    def sentences(self) -> Iterator[str]:
        """Yield the outcome in words."""
        numbers = (
            f"Leaving out the {self._n_accused} accused rows changes {self.metric} by "
            f"{self.effect:+.3f} beyond leaving out random rows of the same weight "
            f"(standard error {self.standard_error:.3f}; {self.lost:.3f} was lost)."
        )
        yield {
            "proven": "Proven: the accused rows broke it.",
            "not proven": "Not proven: the accused rows may or may not have broken it.",
            "not reproduced": "Not reproduced: retraining on all rows loses nothing, so there is "
            "nothing to explain.",
        }[self.verdict]
        yield numbers
        if self.verdict != "not reproduced":
            yield (
                f"Proof needs more than {ERRORS_NEEDED:g} standard errors and "
                f"{SHARE_NEEDED:.0%} of what was lost."
            )
        if self.smallest is not None:
            yield f"The {self.smallest} worst of them bring back as much."
        if self.truth is not None:
            yield (
                f"Of the accused rows {self.truth.precision:.0%} are among the "
                f"{self.truth.n_known} known to be at fault, and {self.truth.recall:.0%} of those "
                "are accused."
            )

    @property
    def _n_accused(self) -> int:
        return max(arm.n_dropped for arm in self.arms if arm.name == ACCUSED)

    def table(self) -> Iterator[tuple[str, ...]]:
        """Yield rows of the table of arms, its head first."""
        yield ("arm", "rows left out", "tokens left out", "mean", "by seed")
        yield ("base model, untrained", "–", "–", f"{self.base:.3f}", "–")
        for arm in self.arms:
            seeds = " ".join(f"{score:.3f}" for score in arm.scores)
            yield (
                arm.name,
                f"{arm.n_dropped}",
                f"{arm.tokens_dropped:,}",
                f"{arm.mean:.3f}",
                seeds,
            )

    def markdown(self) -> str:
        """Return it as a page."""
        head, *body = self.table()
        accused = (
            f"Accused: {md_cell('; '.join(self.accused))}. {self.n_items} eval items, "
            f"{self.steps} optimiser steps in every arm, seeds {', '.join(map(str, self.seeds))}."
        )
        lines = [
            f"# Counterfactual: {md_cell(self.capability)}",
            "",
            *self.sentences(),
            "",
            accused,
            "",
            "| " + " | ".join(head) + " |",
            "| " + " | ".join("---" for _ in head) + " |",
            *("| " + " | ".join(md_cell(cell) for cell in row) + " |" for row in body),
            "",
            *(f"- {note}" for note in self.notes),
        ]
        return "\n".join(lines).rstrip() + "\n"
