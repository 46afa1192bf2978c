"""The attribution in a report: query, engine, clusters, examples."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from gradian_core.attribution.agreement import Agreement
from gradian_core.report.base import JsonObject, Number, Part, Text
from gradian_core.report.uptake import UptakeReport

__all__ = [
    "AgreementReport",
    "ClusterReport",
    "ClusteringReport",
    "EngineReport",
    "ExampleReport",
    "QueryReport",
    "SkippedRow",
    "TopExamples",
]


class QueryReport(Part):
    """What the training examples were scored against."""

    signal: Text
    """``contrastive`` (right answer minus what the tuned model said), ``target`` (right answer
    alone) or ``divergence`` (the first token at which these two part)."""
    n_rows: int
    """Number of rows that the query was built from."""
    aggregation: Text
    """How the scores of the items became one: mean (net effect), or the harm to single items by
    max, top3 or relu."""
    why: Text
    """Why this signal, as a sentence."""
    positive: Text = "reference"
    """Which answer counts as right: ``base`` (the base model's own, where it is fully right) or
    ``reference`` (the completion in the eval file)."""
    n_given: int = 0
    """Queries that ask for the completion in the eval file."""
    n_target: int = 0
    """Queries that keep ``target`` although the signal is another one."""
    uptake: UptakeReport | None = None
    """Whether training rows teach what the tuned model now says; null where no item got worse or
    nothing was generated."""


class AgreementReport(Part):
    """How closely a second engine ranks the same examples."""

    engine: Text
    """The second engine."""
    spearman: Number
    """Rank correlation of all scores; null where one of the engines gives constant scores."""
    top_k: int
    """Number of most harmful examples compared."""
    top_k_overlap: float
    """Share of those that both engines name."""
    top_k_chance: float
    """The overlap that two unrelated rankings would have on average."""
    independent: bool = True
    """False where both engines computed the same thing, so that agreeing is no evidence."""
    ranks: tuple[int, ...] = ()
    """Ranks of some rows by the reported engine, 1 the most harmful: 200 at most, evenly spaced."""
    other_ranks: tuple[int, ...] = ()
    """Ranks of the same rows by the second engine."""
    n_ranked: int = 0
    """Number of rows that were ranked."""

    @classmethod
    def of(
        cls, engine: str, agreement: Agreement, ranks: Sequence[tuple[int, int]] = ()
    ) -> AgreementReport:
        """Take it over from the comparison with the second engine.

        Parameters
        ----------
        engine
            The second engine.
        agreement
            The comparison.
        ranks
            Ranks of some rows by both.
        """
        return cls(
            engine=engine,
            spearman=agreement.spearman,
            top_k=agreement.k,
            top_k_overlap=agreement.overlap,
            top_k_chance=agreement.chance,
            independent=agreement.independent,
            ranks=tuple(rank for rank, _ in ranks),
            other_ranks=tuple(rank for _, rank in ranks),
            n_ranked=agreement.n,
        )


class EngineReport(Part):
    """The engine that gave the scores."""

    name: Text
    """Its name."""
    settings: JsonObject = Field(default_factory=dict)
    """Its settings, defaults included."""
    agreement: AgreementReport | None = None
    """Cross-check by a second engine; null where none was run."""
    compared: tuple[AgreementReport, ...] = ()
    """Agreement with each of the further engines that were asked for."""


class ExampleReport(Part):
    """One training example."""

    id: Text
    """Content hash and row number."""
    row: int
    """Row number in the file, from 0."""
    cluster: Text | None
    """Cluster it belongs to; null without clusters."""
    score: float
    """Positive: it reinforced the queried behaviour; negative: it degraded it. From the items'
    scores by ``query.aggregation``; this ranks the examples."""
    net: float
    """Mean of the items' scores: the net effect. Equal to the score under aggregation mean."""
    predicted_loss_delta_if_removed: float
    """Net effect divided by the number of examples with a gradient: the predicted change of the
    mean query loss."""
    prompt_excerpt: Text
    """Start of its prompt, as one line."""
    answer_excerpt: Text
    """Start of its answer, as one line."""
    text: Text
    """Its whole text, cut at 4,000 characters."""


class TopExamples(Part):
    """The ends of the ranking."""

    most_harmful: tuple[ExampleReport, ...] = ()
    """Examples with the most negative scores, worst first; none with a score of zero or more."""
    most_helpful: tuple[ExampleReport, ...] = ()
    """Examples with the most positive net effect, best first; none with one of zero or less. A row
    may help the items on the whole and still be the worst for one of them."""


class ClusterReport(Part):
    """A group of training examples. Skipped rows count nowhere but in ``n_skipped``."""

    cluster: Text
    """Its key, as in scores.csv: the declared name, or a number; -1 is noise."""
    label: Text
    """What to call it: the declared name, or its most distinctive terms."""
    terms: tuple[Text, ...] = ()
    """Terms that tell it from the other examples, most distinctive first."""
    n: int
    """Number of its examples that have a score."""
    n_skipped: int = 0
    """Number of its rows that were skipped."""
    influence: float
    """Sum of its scores, with sign."""
    net: float
    """Sum of its examples' net effects, with sign."""
    share_of_negative: float
    """Its negative scores as a share of all negative scores."""
    mean: Number
    """Mean score of its examples; null if all of them were skipped."""
    harm_ratio: Number = None
    """Negative score for each example, relative to the examples outside the cluster; null
    where there is nothing outside, or no harm."""
    stands_out: bool
    """Whether it is a group whose examples do at least twice the harm of the others."""
    top_examples: tuple[ExampleReport, ...] = ()
    """Its most harmful examples, worst first."""


class ClusteringReport(Part):
    """How the examples were grouped."""

    method: Text
    """The method that was really used."""
    notes: tuple[Text, ...] = ()
    """What was guessed or left out, as sentences."""


class SkippedRow(Part):
    """A training row without a gradient; its score is 0 and means nothing."""

    id: Text
    """Content hash and row number."""
    row: int
    """Row number in the file, from 0."""
    reason: Text
    """Why it was skipped."""
