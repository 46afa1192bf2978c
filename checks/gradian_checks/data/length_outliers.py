"""Rows that are far longer than the rest."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._data_grade import pick_ids, plural, sample_note
from gradian_core.audit.facts import ExampleFacts, NotAssessed, TokenFacts
from gradian_core.audit.samples import items, rows
from gradian_core.check import check
from gradian_core.findings import Finding, Severity

FEWEST_ROWS = 50
ROBUST_Z = 5.0
OVER_P95 = 4.0
_TO_SIGMA = 0.6745
"""Median absolute deviation of a normal distribution, in standard deviations."""


@check(
    severity=Severity.LOW,
    since="0.1",
    trips=lambda: {
        "examples": rows(items=[*items(100), {"prompt": "Tell me", "completion": "la " * 9000}])
    },
    clean=lambda: {"examples": rows(n=100)},
)
def length_outliers(examples: ExampleFacts, tokens: TokenFacts | None = None) -> Iterator[Finding]:
    """Extremely long examples.

    Why it matters: a row fifty times as long as the others is mostly an accident, such as a
    whole document pasted into a prompt. It decides how much memory a batch takes, and it weighs
    as much in the loss as fifty others where the loss is a mean over tokens.

    How to fix: look at the rows that the finding names; cut, split or remove them.

    Threshold: the robust z-score of the logarithm of the length is above 5 *and* the row is
    longer than four times the 95th percentile. Info; low if such a row exceeds the sequence
    length. Lengths of text are log-normal: on the plain scale a long tail would be an outlier.

    Not assessed: with fewer than 50 rows, and where more than half of the rows have one length.
    """
    if tokens is not None:
        lengths, ids, unit = tokens.tokens.full_lengths, tokens.tokens.ids, "tokens"
    else:
        lengths = examples.prompt_chars.astype(np.int64) + examples.answer_chars
        ids, unit = tuple(examples.ids), "characters"
    if len(lengths) < FEWEST_ROWS:
        raise NotAssessed(f"{len(lengths)} rows are too few to say which length is usual.")
    logs = np.log(np.maximum(lengths, 1).astype(np.float64))
    middle = float(np.median(logs))
    spread = float(np.median(np.abs(logs - middle)))
    if spread == 0.0:
        raise NotAssessed("More than half of the rows have the same length, so none is unusual.")
    p95 = float(np.percentile(lengths, 95))
    far = (_TO_SIGMA * (logs - middle) / spread > ROBUST_Z) & (lengths > OVER_P95 * p95)
    places = np.flatnonzero(far)
    if not len(places):
        return
    places = places[np.argsort(-lengths[places], kind="stable")]
    longest = int(lengths[places[0]])
    limit = None if tokens is None else tokens.max_seq_length
    exceeds = limit is not None and longest > limit
    yield Finding(
        id="data.length_outliers",
        severity=Severity.LOW if exceeds else Severity.INFO,
        title=f"{plural(len(places), 'row')} far longer than the rest, up to {longest:,} {unit}",
        detail=f"The median row has {int(np.median(lengths)):,} {unit} and 95% of the rows have "
        f"at most {p95:,.0f}."
        + (f" The sequence length is {limit:,}." if exceeds else "")
        + (sample_note(tokens) if tokens is not None else ""),
        fix="Look at these rows: is a whole document in one of them? Cut, split or remove them.",
        evidence={
            "rows": len(places),
            "longest": longest,
            "median": float(np.median(lengths)),
            "p95": p95,
            "unit": unit,
            "limit": limit,
        },
        example_ids=pick_ids(ids, places),
    )
