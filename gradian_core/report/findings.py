"""What the attribution has to say about itself: limits, gaps, disagreement.

Each function returns the finding, or None where there is nothing to say. The findings of the
evaluation (such as ``attribution.gate_failed``) are the evaluation's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.attribution.clusters import (
    NOISE,
    STANDS_OUT_RATIO,
    STANDS_OUT_ROWS,
    ClusterSummary,
)
from gradian_core.findings import Finding, Severity
from gradian_core.report.attribution import AgreementReport

__all__ = [
    "AGREEMENT_HIGH",
    "AGREEMENT_LOW",
    "cluster_noise",
    "engine_caveats",
    "engine_disagreement",
    "flat_influence",
    "ignored_settings",
    "no_capability_target",
    "not_attributed_parameters",
    "rows_without_supervision",
    "uncalibrated_scale",
    "whole_sequence_supervision",
]

AGREEMENT_HIGH = 0.47
"""Common share of the most harmful decile from which two engines count as agreeing."""
AGREEMENT_LOW = 0.3
"""Share below which the ranking depends on the engine: engines that share gradients have .2 in
common on faulty setups, where there is nothing to agree on."""

_MOSTLY = 0.5
_PLAUSIBLE_NATS = 1.0
"""A single row of many that changes the mean loss of the lost items by more is not believable."""


def engine_disagreement(engine: str, agreement: AgreementReport) -> Finding | None:
    """Two engines rank the examples differently.

    Medium where the most harmful decile of both has less than :data:`AGREEMENT_HIGH` in common,
    high below :data:`AGREEMENT_LOW`. (Spearman is dominated by the many rows that hardly
    matter.) Where an engine scores all rows alike nothing can
    disagree; the headline says so. Where both computed one thing, there was no second opinion.
    """
    spearman = agreement.spearman
    if not agreement.independent:
        return _no_second_opinion(engine, agreement)
    if spearman is None or agreement.top_k_overlap >= AGREEMENT_HIGH:
        return None
    return Finding(
        id="attribution.engine_disagreement",
        severity=Severity.HIGH if agreement.top_k_overlap < AGREEMENT_LOW else Severity.MEDIUM,
        title=f"{engine} and {agreement.engine} name other examples as the most harmful",
        detail=f"Of the {agreement.top_k} most harmful examples, both name "
        f"{agreement.top_k_overlap:.0%}; unrelated rankings would share "
        f"{agreement.top_k_chance:.0%}. Over all rows, most of which matter little, their ranks "
        f"correlate at {spearman:.3f} (Spearman).",
        fix="Trust what both rankings name, and confirm it by retraining before deleting rows.",
        evidence={
            "engine": engine,
            "cross_check": agreement.engine,
            "spearman": spearman,
            "top_k": agreement.top_k,
            "top_k_overlap": agreement.top_k_overlap,
            "top_k_chance": agreement.top_k_chance,
            "medium_below": AGREEMENT_HIGH,
            "high_below": AGREEMENT_LOW,
        },
    )


def _no_second_opinion(engine: str, agreement: AgreementReport) -> Finding:
    return Finding(
        id="attribution.cross_check_not_independent",
        severity=Severity.MEDIUM,
        title=f"No independent second engine: {agreement.engine} computed the same ranking as "
        f"{engine}",
        detail="The scores of the two are the same up to a factor, or order every row alike. "
        "They agree because they are one computation, so nothing confirms the ranking.",
        fix="Choose an engine of another kind as engine.cross_check: datainf beside graddot or "
        "tracin, graddot beside datainf.",
        evidence={"engine": engine, "cross_check": agreement.engine},
    )


def no_capability_target(n_query_rows: int) -> Finding:
    """There was no eval set, so training rows stood in for the query."""
    return Finding(
        id="attribution.no_capability_target",
        severity=Severity.HIGH,
        title="No eval data set: the ranking explains no regression",
        detail=f"The first {n_query_rows} training rows stood in for the behaviour in question. "
        "That shows that the machinery runs, and nothing about what the fine-tune lost.",
        fix="Give --eval-dataset: items that the tuned model should get right, with the answers "
        "that were wanted.",
        evidence={"n_query_rows": n_query_rows},
    )


def rows_without_supervision(example_ids: Sequence[str], n_examples: int) -> Finding | None:
    """Rows without a supervised token: the loss, and so the gradient, does not exist.

    High if they are the majority, else medium: the trainer learned nothing from them either.
    """
    n = len(example_ids)
    if n == 0:
        return None
    share = n / n_examples
    return Finding(
        id="attribution.rows_without_supervision",
        severity=Severity.HIGH if share >= _MOSTLY else Severity.MEDIUM,
        title=f"{n} of {n_examples} training rows have no supervised token",
        detail="They have no loss and no gradient. Their score is 0, and they count in no mean "
        "and no share.",
        fix="Look at one of them: the answer may be empty, or cut off at grads.max_seq_length.",
        evidence={"n_rows": n, "share": share},
        example_ids=tuple(example_ids),
    )


def engine_caveats(caveats: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Yield what engines say about how far they are to be trusted here, each sentence once.

    Parameters
    ----------
    caveats
        Pairs of engine and sentence.
    """
    said_by: dict[str, dict[str, None]] = {}
    for engine, sentence in caveats:
        said_by.setdefault(sentence, {})[engine] = None
    for sentence, engines in said_by.items():
        yield Finding(
            id="attribution.engine_caveat",
            severity=Severity.INFO,
            title=f"{' and '.join(engines)}: {sentence}",
            evidence={"engine": ", ".join(engines)},
        )


def ignored_settings(engine: str, settings: Mapping[str, object], others: str) -> Finding | None:
    """Report settings of section ``engine`` that were changed and that the engine does not take.

    Parameters
    ----------
    engine
        The engine whose scores are reported.
    settings
        Name and value of each.
    others
        A sentence on who does take them; may be empty.
    """
    if not settings:
        return None
    listed = ", ".join(f"{name}: {value}" for name, value in settings.items())
    return Finding(
        id="attribution.ignored_setting",
        severity=Severity.LOW,
        title=f"Set, and without effect on the scores of {engine}: {listed}",
        detail=f"{engine} has no such setting.{' ' if others else ''}{others}",
        fix="Remove it, or choose an engine that takes it.",
        evidence={"engine": engine, "settings": dict(settings)},
    )


def flat_influence(clusters: Sequence[ClusterSummary]) -> Finding | None:
    """No group of examples stands out, or there is only one. For a capability that regressed.

    The rule is that of :attr:`ClusterSummary.stands_out`: a net harmful group of a few examples
    or more that do at least twice the harm of the others, for each example. A data fault is
    lumpy; a fault of the setup makes all examples look equally guilty.
    """
    if any(cluster.stands_out for cluster in clusters):
        return None
    if len(clusters) == 1:
        return Finding(
            id="attribution.single_cluster",
            severity=Severity.LOW,
            title="All training examples are in one cluster, so none can stand out",
            fix="Give the rows a cluster of their own, or use another clustering.method.",
            evidence={"n_clusters": 1},
        )
    large = sum(c.label != NOISE and c.n >= STANDS_OUT_ROWS for c in clusters)
    if large < 2:
        return Finding(
            id="attribution.groups_too_small",
            severity=Severity.LOW,
            title=f"Too few clusters have {STANDS_OUT_ROWS} rows to tell whether one stands out",
            detail="That no group stands out is then no evidence about data or setup.",
            fix="Give the rows a cluster of their own, or lower clustering.min_cluster_size.",
            evidence={"n_clusters": len(clusters), "n_large_enough": large},
        )
    ratios = [c.harm_ratio for c in clusters if c.label != NOISE and c.harm_ratio is not None]
    harm = any(cluster.share_of_negative for cluster in clusters)
    return Finding(
        id="attribution.flat_influence",
        severity=Severity.MEDIUM,
        title="No group of training examples stands out"
        if harm
        else "No training example has a negative score",
        detail="The harm is spread over the data. That is how a fault of the training setup "
        "looks (learning rate, epochs, batch size, truncation, loss mask), since it acts on all "
        "examples alike; it can also mean that the clusters do not follow the fault."
        if harm
        else "Nothing in the training data opposes the lost behaviour, so the cause is more "
        "likely in the training setup, or the query does not describe what was lost.",
        fix="Read the config and dynamics findings first (gradian diagnose --run); deleting "
        "rows is unlikely to help.",
        evidence={
            "n_clusters": len(clusters),
            "highest_harm_ratio": max(ratios, default=None),
            "stands_out_from": STANDS_OUT_RATIO,
            "smallest_group": STANDS_OUT_ROWS,
        },
    )


def whole_sequence_supervision(
    example_ids: Sequence[str], n_examples: int, why: str
) -> Finding | None:
    """Rows whose loss covers the whole sequence, prompt included.

    Parameters
    ----------
    example_ids
        Ids of those rows.
    n_examples
        Number of training rows.
    why
        Why, as a sentence: raw text, or no chat template.
    """
    n = len(example_ids)
    if n == 0:
        return None
    return Finding(
        id="attribution.whole_sequence_supervision",
        severity=Severity.MEDIUM,
        title=f"The loss of {n} of {n_examples} training rows covers the whole sequence",
        detail=f"{why} Scores of these rows mix what the prompt teaches with what the answer "
        "teaches. That is right only if the fine-tune was trained in this way.",
        fix="If training supervised answers only, give rows with prompt and answer, and a "
        "tokenizer with the chat template of the training.",
        evidence={"n_rows": n, "share": n / n_examples},
        example_ids=tuple(example_ids),
    )


def not_attributed_parameters(names: Sequence[str]) -> Finding | None:
    """Trained parameters beside the LoRA matrices: whole modules, token rows, biases."""
    if not names:
        return None
    return Finding(
        id="attribution.not_attributed_parameters",
        severity=Severity.MEDIUM,
        title=f"Not part of the attribution, though trained: {', '.join(sorted(names))}",
        detail="The adapter also trained parameters that are no LoRA matrices. Scores are exact "
        "for the LoRA matrices and silent about what the examples did to the others.",
        fix="Read the scores as those of the LoRA part; retrain to confirm.",
        evidence={"modules": sorted(names)},
    )


def cluster_noise(clusters: Sequence[ClusterSummary]) -> Finding | None:
    """Most examples belong to no cluster, so the cluster table is about a minority."""
    noise = sum(cluster.n for cluster in clusters if cluster.label == NOISE)
    total = sum(cluster.n for cluster in clusters)
    if total == 0 or noise < _MOSTLY * total:
        return None
    return Finding(
        id="attribution.cluster_noise",
        severity=Severity.LOW,
        title=f"{noise} of {total} examples are in no cluster",
        detail="They are too unlike each other for the clusterer. The ranking of examples does "
        "not depend on it.",
        fix="Lower clustering.min_cluster_size, use clustering.method: kmeans, or give the rows "
        "a cluster of their own.",
        evidence={"n_noise": noise, "n_examples": total},
    )


def uncalibrated_scale(scores: NDArray[np.floating[Any]], n_scored: int) -> Finding | None:
    """Predicted changes of the loss that cannot be meant in nats.

    An inverse curvature with little damping stretches directions that the data hardly constrain,
    so the predictions of all rows grow by one common factor. Order, sign, shares and ratios are
    free of it.

    Parameters
    ----------
    scores
        ``(n,)`` scores.
    n_scored
        Number of rows with a gradient.
    """
    largest = float(np.abs(scores).max(initial=0.0)) / max(n_scored, 1)
    if largest <= _PLAUSIBLE_NATS:
        return None
    return Finding(
        id="attribution.uncalibrated_scale",
        severity=Severity.INFO,
        title=f"Scores order the rows; they are not in nats (largest prediction {largest:.3g})",
        detail="One row cannot change the query loss by that much. The scale depends on the "
        "damping; order, sign, shares and ratios do not depend on a common factor.",
        fix="Compare scores with each other. To know the size of an effect, retrain.",
        evidence={"largest_predicted_loss_delta": largest, "plausible_up_to": _PLAUSIBLE_NATS},
    )
