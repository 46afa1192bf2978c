"""What the evaluation lane found out."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CapabilityResult", "ItemOutcome", "Measurement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOutcome:
    """One eval item under base and tuned model.

    Parameters
    ----------
    id, row
        Of the eval row.
    prompt
        Text of its prompt.
    reference
        The completion in the eval file.
    base_output, tuned_output
        Generated answers; None for likelihood metrics.
    base_score, tuned_score
        Scores by the metric.
    margin
        Base preference margin in nats: how much more likely the base model finds the correct
        answer than what the tuned model says (total log-probabilities). None where it was not
        measured.
    base_cut, tuned_cut
        Whether the answer was cut off at the cap on new tokens, so that it has no end.
    """

    id: str
    row: int
    prompt: str
    reference: str
    base_output: str | None
    tuned_output: str | None
    base_score: float
    tuned_score: float
    margin: float | None = None
    base_cut: bool = False
    tuned_cut: bool = False

    @property
    def regressed(self) -> bool:
        """Whether the tuned model does worse on it."""
        return self.tuned_score < self.base_score


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What both models did on every item, before anyone judges the difference.

    Parameters
    ----------
    metric
        Name of the metric.
    proxy_used
        True where the metric is a likelihood and not a judgement of an answer.
    items
        Every item, in file order.
    notes
        What limits it, as sentences.
    """

    metric: str
    proxy_used: bool
    items: tuple[ItemOutcome, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityResult:
    """A capability measured under base and tuned model.

    Parameters
    ----------
    name, metric
        Name of the capability and of the metric.
    proxy_used
        True where the metric is a likelihood and not a judgement of an answer.
    items
        Every item, in file order.
    base, tuned, delta
        Means, and tuned minus base.
    ci_low, ci_high, ci_level
        Paired percentile bootstrap interval of the delta.
    verdict
        ``regressed``, ``improved`` or ``not significant``.
    base_failures
        Number of items that the base model fails too (score 0; none for likelihoods).
    notes
        Why no change could be shown, and what limits the measurement, as sentences.
    """

    name: str
    metric: str
    proxy_used: bool
    items: tuple[ItemOutcome, ...]
    base: float
    tuned: float
    delta: float
    ci_low: float
    ci_high: float
    ci_level: float
    verdict: str
    base_failures: int
    notes: tuple[str, ...] = ()

    @property
    def flipped(self) -> tuple[int, ...]:
        """Positions in ``items`` of those that got worse."""
        return tuple(i for i, item in enumerate(self.items) if item.regressed)
