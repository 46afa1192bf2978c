"""Rows that are nearly the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gradian_checks._data_grade import grade, pick_ids, plural
from gradian_checks._data_rows import read
from gradian_core.audit.facts import ExampleFacts
from gradian_core.audit.samples import rows
from gradian_core.audit.similar import ALIKE, SimilarPairs, near_duplicate_pairs
from gradian_core.check import check
from gradian_core.findings import Finding, Severity

STEPS = ((0.20, Severity.MEDIUM), (0.05, Severity.LOW))
ANSWERS_ALIKE = 80.0
_COMPARED = 4000


def _walks(changed: int) -> ExampleFacts:
    """Return 40 different long rows, and so many of them again with one word changed."""
    words = ("street", "lane", "alley", "bridge") * 10
    walks = [
        " ".join(f"{word} {(i + 3) ** 2 * (j + 5) ** 3 % 997}" for j, word in enumerate(words))
        for i in range(40)
    ]
    again = [walk + " and home" for walk in walks[:changed]]
    return rows(items=[{"prompt": "How do I walk?", "completion": w} for w in (*walks, *again)])


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {"examples": _walks(20)},
    clean=lambda: {"examples": _walks(0)},
)
def near_duplicates(examples: ExampleFacts) -> Iterator[Finding]:
    """Near-duplicate examples.

    Why it matters: rows that differ in a word count twice, are learned by heart, and spread
    over training and eval set when one is split off at random.

    How to fix: keep one row of each pair; where the variants are meant (augmentation), nothing.

    Threshold: rows with a partner above 5 % low, above 20 % medium. Partners share 80 % of
    their word triples (Jaccard), over what varies: system messages and what half of the prompts
    or answers start or end with are left out, as are rows with fewer than 20 triples. Their
    answers must be alike too: two nearly equal prompts with different labels are a contrast and
    teach something. Candidates come from MinHash; each pair is verified exactly.

    Not assessed: never; exact copies are ``data.duplicates``.
    """
    pairs = near_duplicate_pairs(examples)
    if grade(_share(examples, pairs.left, pairs.right), STEPS) is None:
        return
    alike = _answers_alike(examples, pairs)
    left, right = pairs.left[alike], pairs.right[alike]
    share = _share(examples, left, right)
    severity = grade(share, STEPS)
    if severity is None:
        return
    places = np.union1d(left, right)
    closest = float(pairs.jaccard[alike].max())
    yield Finding(
        id="data.near_duplicates",
        severity=severity,
        title=f"{plural(len(places), 'row')} ({share:.1%}) "
        f"{'is' if len(places) == 1 else 'are'} nearly the same as another",
        detail=f"They share {ALIKE:.0%} of their word triples or more, the closest {closest:.0%}, "
        "with what most rows have in common left out."
        + (f" Seen in a sample of {plural(pairs.of, 'row')}." if pairs.sampled else ""),
        fix="Keep one row of each pair, unless the variants are meant.",
        evidence={
            "rows": len(places),
            "share": share,
            "pairs": len(left),
            "closest": closest,
            "sampled": pairs.sampled,
        },
        example_ids=pick_ids(examples.ids, places),
    )


def _share(examples: ExampleFacts, left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    return len(np.union1d(left, right)) / max(len(examples), 1)


def _answers_alike(examples: ExampleFacts, pairs: SimilarPairs) -> NDArray[np.bool_]:
    """Return ``(k,)`` bool: pairs whose answers are the same or nearly so."""
    from rapidfuzz import fuzz

    alike: NDArray[np.bool_] = examples.answer[pairs.left] == examples.answer[pairs.right]
    open_pairs = np.flatnonzero(~alike)
    rows = np.union1d(pairs.left[open_pairs], pairs.right[open_pairs])
    answers = {place: (row.answer or "")[:_COMPARED] for place, row in read(examples, rows)}
    for pair in open_pairs:
        left, right = int(pairs.left[pair]), int(pairs.right[pair])
        alike[pair] = fuzz.ratio(answers[left], answers[right]) >= ANSWERS_ALIKE
    return alike
