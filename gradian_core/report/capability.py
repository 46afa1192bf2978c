"""The capability in a report: what was measured, on which items, how sure."""

from __future__ import annotations

from gradian_core.evaluation.findings import THIN_MARGIN
from gradian_core.evaluation.result import CapabilityResult, ItemOutcome
from gradian_core.report.base import Number, Part, Text, limit_text

__all__ = ["CapabilityReport", "ItemReport", "MarginReport"]


class ItemReport(Part):
    """One eval item under base and tuned model."""

    id: Text
    """Id of the eval row."""
    row: int
    """Row number in the eval file, from 0."""
    prompt: Text
    """Its prompt, cut at 4,000 characters."""
    reference: Text
    """The completion that the eval file wants, cut likewise."""
    base_output: Text | None
    """What the base model answered; null where nothing was generated."""
    tuned_output: Text | None
    """What the tuned model answered; null where nothing was generated."""
    base_score: Number
    """Score of the base model by the metric; null where it is not a finite number."""
    tuned_score: Number
    """Score of the tuned model by the metric; null where it is not a finite number."""
    regressed: bool
    """Whether the tuned model does worse on it."""
    margin: Number = None
    """How much more likely the base model finds the right answer than what the tuned model says,
    in nats; null where it was not measured."""

    @classmethod
    def of(cls, item: ItemOutcome) -> ItemReport:
        """Take it over from the evaluation."""

        def limited(text: str | None) -> str | None:
            return None if text is None else limit_text(text)

        return cls(
            id=item.id,
            row=item.row,
            prompt=limit_text(item.prompt),
            reference=limit_text(item.reference),
            base_output=limited(item.base_output),
            tuned_output=limited(item.tuned_output),
            base_score=item.base_score,
            tuned_score=item.tuned_score,
            regressed=item.regressed,
            margin=item.margin,
        )


class MarginReport(Part):
    """Base preference margins of the items that got worse."""

    n: int
    """Items with a measured margin."""
    mean: float
    """Their mean margin in nats."""
    n_weak: int
    """Items with a margin below ``weak_below``: the base model held them weakly."""
    weak_below: float
    """The threshold in nats."""


class CapabilityReport(Part):
    """A capability measured under base and tuned model."""

    name: Text
    """Name of the capability."""
    metric: Text
    """Name of the metric."""
    proxy_used: bool
    """True where the metric is a likelihood and not a judgement of an answer."""
    n_items: int
    """Number of eval items."""
    base: float
    """Mean score of the base model."""
    tuned: float
    """Mean score of the tuned model."""
    delta: float
    """Tuned minus base."""
    ci_low: float
    """Lower end of the interval of the delta."""
    ci_high: float
    """Upper end of the interval of the delta."""
    ci_level: float
    """Level of that interval, such as 0.95."""
    verdict: Text
    """``regressed``, ``improved``, ``not significant`` or ``undecidable``."""
    reason: Text = ""
    """Why it is this verdict, as a sentence."""
    ci_method: Text = "bootstrap"
    """What the interval is: ``bootstrap`` (paired, percentile), ``tango`` where all items changed
    alike, ``t`` for graded scores, ``none`` where those show no spread."""
    test: Text | None = None
    """The test that has to confirm a change: ``mid-p McNemar`` or ``sign-flip``."""
    p_value: Number = None
    """Its p-value, two-sided."""
    tango_low: Number = None
    """Lower end of Tango's score interval of the delta; null for graded scores."""
    tango_high: Number = None
    """Upper end of it."""
    detectable: Text = ""
    """What so many items can show, as a sentence."""
    n_distinct: int | None = None
    """Items that differ in prompt or reference; the gate counts copies once. Null: all do."""
    n_flipped: int
    """Items on which the tuned model does worse."""
    n_base_failures: int
    """Items that the base model fails too: no training row explains them."""
    margins: MarginReport | None = None
    """Margins of the items that got worse; null where none was measured."""
    items: tuple[ItemReport, ...] = ()
    """Every item, in file order."""

    @classmethod
    def of(cls, result: CapabilityResult) -> CapabilityReport:
        """Take it over from the evaluation."""
        items = tuple(ItemReport.of(item) for item in result.items)
        measured = [item.margin for item in items if item.regressed and item.margin is not None]
        margins = None
        if measured:
            margins = MarginReport(
                n=len(measured),
                mean=sum(measured) / len(measured),
                n_weak=sum(margin < THIN_MARGIN for margin in measured),
                weak_below=THIN_MARGIN,
            )
        return cls(
            name=result.name,
            metric=result.metric,
            proxy_used=result.proxy_used,
            n_items=len(items),
            base=result.base,
            tuned=result.tuned,
            delta=result.delta,
            ci_low=result.ci_low,
            ci_high=result.ci_high,
            ci_level=result.ci_level,
            verdict=result.verdict,
            reason=result.reason,
            ci_method=result.ci_method,
            test=result.test,
            p_value=result.p_value,
            tango_low=result.tango_low,
            tango_high=result.tango_high,
            detectable=result.detectable,
            n_distinct=result.n_distinct,
            n_flipped=len(result.flipped),
            n_base_failures=result.base_failures,
            margins=margins,
            items=items,
        )
