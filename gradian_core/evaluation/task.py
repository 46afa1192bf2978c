"""What the two ways of measuring have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradian_core.config.models import EvaluationSection
from gradian_core.data.example import Example
from gradian_core.evaluation.judge import Judge
from gradian_core.evaluation.result import ItemOutcome
from gradian_core.model.loaded import LoadedModel

__all__ = ["EvalTask", "Progress", "outcome", "silent"]

Progress = Callable[[str, int, int], None]
"""Called with the stage, and how many of how many items are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalTask:
    """Eval rows to be measured under both models.

    Parameters
    ----------
    loaded
        One set of weights; the base model is the tuned one with its adapter off.
    examples
        Eval rows with answers, in file order.
    judge
        The metric.
    settings
        The ``evaluation`` section.
    seed
        Seeds sampling.
    progress
        Told about stages ``base``, ``tuned``, ``margin``.
    """

    loaded: LoadedModel
    examples: Sequence[Example]
    judge: Judge
    settings: EvaluationSection
    seed: int
    progress: Progress

    def counter(self, stage: str) -> Callable[[int, int], None]:
        """Return the progress callback of one stage."""
        return lambda done, total: self.progress(stage, done, total)


def outcome(
    example: Example,
    base_score: float,
    tuned_score: float,
    base_output: str | None = None,
    tuned_output: str | None = None,
) -> ItemOutcome:
    """Return the outcome of one row, without a margin."""
    return ItemOutcome(
        id=example.id,
        row=example.row,
        prompt="\n".join(turn.content for turn in example.prompt),
        reference=example.answer or "",
        base_output=base_output,
        tuned_output=tuned_output,
        base_score=base_score,
        tuned_score=tuned_score,
    )


def silent(_stage: str, _done: int, _total: int) -> None:
    """Report nothing."""
