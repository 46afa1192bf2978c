"""Uptake in a report: whether training rows teach what the tuned model now says."""

from __future__ import annotations

from collections.abc import Sequence

from gradian_core.attribution.uptake import TAUGHT, Phrase, Uptake
from gradian_core.evaluation.result import CapabilityResult
from gradian_core.findings import Finding, Severity
from gradian_core.report.base import Part, Text, limit_text
from gradian_core.text import excerpt

__all__ = ["PhraseReport", "UptakeReport", "uptake_findings"]

_PHRASES = 20
_IDS = 20
_WIDTH = 60


class PhraseReport(Part):
    """Something wrong that the tuned model says."""

    text: Text
    """Its words, folded: what the wrong answer has and the correct one has not."""
    eval_ids: tuple[Text, ...]
    """Eval items on which it is said, 20 at most."""
    n_items: int
    """Number of those items."""
    n_rows: int
    """Number of training rows that teach it."""
    example_ids: tuple[Text, ...]
    """Those rows in the order of the file, 20 at most."""
    plain: bool
    """Whether it is so short or common that only rows count that ask alike."""
    whole: bool
    """Whether only rows count that answer exactly this."""


class UptakeReport(Part):
    """The share of the wrong answers that training rows teach."""

    share: float
    """``n_taught`` of ``n_items``."""
    n_items: int
    """Items that got worse."""
    n_taught: int
    """Those of them whose wrong answer stands in the answer of a training row."""
    n_rows: int
    """Training rows that teach any of them."""
    taught_from: float
    """Share from which the wrong answers count as taught."""
    phrases: tuple[PhraseReport, ...] = ()
    """What is said instead, the most frequent first, 20 at most."""

    @classmethod
    def of(
        cls, uptake: Uptake, capability: CapabilityResult, example_ids: Sequence[str]
    ) -> UptakeReport:
        """Take it over; ``example_ids`` are those of all training rows, in the file's order."""
        lost = [capability.items[i].id for i in capability.flipped]

        def phrase_report(phrase: Phrase) -> PhraseReport:
            return PhraseReport(
                text=limit_text(phrase.text),
                eval_ids=tuple(lost[i] for i in phrase.items[:_IDS]),
                n_items=len(phrase.items),
                n_rows=len(phrase.rows),
                example_ids=tuple(example_ids[row] for row in phrase.rows[:_IDS]),
                plain=phrase.plain,
                whole=phrase.whole,
            )

        frequent = sorted(uptake.phrases, key=lambda phrase: -len(phrase.items))
        return cls(
            share=uptake.share,
            n_items=uptake.n_items,
            n_taught=uptake.n_taught,
            n_rows=len({row for phrase in uptake.phrases for row in phrase.rows}),
            taught_from=TAUGHT,
            phrases=tuple(phrase_report(phrase) for phrase in frequent[:_PHRASES]),
        )

    @property
    def sentence(self) -> str:
        """It all as one sentence."""
        if not self.n_taught:
            return (
                f"None of the {self.n_items:,} wrong answers stands in a training row: the right "
                "ones were displaced, and no row teaches what is said instead."
            )
        return (
            f"Training rows teach {self.n_taught:,} of the {self.n_items:,} wrong answers "
            f"(uptake {self.share:.2f}): {self.n_rows:,} rows hold what the tuned model now says."
        )


def uptake_findings(
    uptake: Uptake, capability: CapabilityResult, example_ids: Sequence[str]
) -> list[Finding]:
    """Say whether the wrong answers were taught; exactly one finding.

    Parameters
    ----------
    uptake
        Of the items that got worse.
    capability
        The measured capability.
    example_ids
        Ids of all training rows, in the order of the file.
    """
    told = UptakeReport.of(uptake, capability, example_ids)
    rows = tuple(example_ids[row] for row in uptake.teachers())
    evidence = {
        "uptake": told.share,
        "taught": told.n_taught,
        "items": told.n_items,
        "rows": told.n_rows,
        "taught_from": TAUGHT,
        "said": [excerpt(phrase.text, _WIDTH) for phrase in told.phrases],
    }
    if uptake.taught:
        return [
            Finding(
                id="attribution.learned_from_rows",
                severity=Severity.MEDIUM,
                title=f"{capability.name}: {told.n_taught} of {told.n_items} wrong answers stand "
                f"in training rows (uptake {told.share:.2f})",
                detail=f"{told.n_rows} rows hold, in an answer, what the tuned model now says and "
                "should not. Saying it is not by itself a fault: it may be right there, and only "
                "repeated in the wrong place.",
                fix="Read these rows, and see whether they are also among the most harmful.",
                evidence=evidence,
                example_ids=rows,
            )
        ]
    what = (
        f"training rows teach {told.n_taught} of {told.n_items} wrong answers"
        if told.n_taught
        else f"no training row teaches any of the {told.n_items} wrong answers"
    )
    return [
        Finding(
            id="attribution.displaced_not_learned",
            severity=Severity.MEDIUM,
            title=f"{capability.name}: {what} (uptake {told.share:.2f})",
            detail="What the tuned model says instead is mostly its own: the right answers were "
            "displaced and no wrong ones learned in their place. A change of form, much training "
            "on something else, or a fault of the setup does that; so can wrong rows about "
            "similar things.",
            fix="Compare the form of the training answers with that of the right answers, and "
            "confirm any accused rows by retraining beside a control.",
            evidence=evidence,
            example_ids=rows,
        )
    ]
