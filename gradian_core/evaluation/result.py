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
    def content(self) -> tuple[str, str]:
        """Prompt and reference, white space aside: equal for copies of an item."""
        return " ".join(self.prompt.split()), " ".join(self.reference.split())

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
    max_new_tokens
        Cap on the tokens of an answer; None where none was generated.
    """

    metric: str
    proxy_used: bool
    items: tuple[ItemOutcome, ...]
    notes: tuple[str, ...] = ()
    max_new_tokens: int | None = None


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
        Interval of the delta.
    verdict
        ``regressed``, ``improved``, ``not significant`` or ``undecidable``.
    base_failures
        Number of items that the base model fails too (score 0; none for likelihoods).
    notes
        What limits the measurement, as sentences.
    n_distinct
        Number of items that differ in prompt or reference: copies count once. None: all of them.
    ci_method, test, p_value, tango_low, tango_high, reason, detectable
        As in :class:`~gradian_core.evaluation.gate.GateResult`.
    max_new_tokens
        Cap on the tokens of an answer; None where none was generated.
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
    n_distinct: int | None = None
    ci_method: str = "bootstrap"
    test: str | None = None
    p_value: float | None = None
    tango_low: float | None = None
    tango_high: float | None = None
    reason: str = ""
    detectable: str = ""
    max_new_tokens: int | None = None

    @property
    def flipped(self) -> tuple[int, ...]:
        """Positions in ``items`` of those that got worse."""
        return tuple(i for i, item in enumerate(self.items) if item.regressed)
