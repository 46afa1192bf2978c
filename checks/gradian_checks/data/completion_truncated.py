"""Answers that the sequence length cuts off."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._data_grade import grade, pick_ids, plural, sample_note
from gradian_checks._data_tool import long_rows
from gradian_core.audit.facts import NotAssessed, TokenFacts
from gradian_core.audit.samples import tokens
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

STEPS = (
    (0.50, Severity.CRITICAL),
    (0.20, Severity.HIGH),
    (0.05, Severity.MEDIUM),
    (0.0, Severity.LOW),
)


@check(
    severity=Severity.CRITICAL,
    since="0.1",
    trips=lambda: {"tokens": tokens(n=50, max_seq_length=90)},
    clean=lambda: {"tokens": tokens(n=50, max_seq_length=4096)},
)
def completion_truncated(
    tokens: TokenFacts, training: TrainingConfig | None = None
) -> Iterator[Finding]:
    """Targets cut off by max_seq_length.

    Why it matters: a cut answer ends in the middle of a sentence and has no end token. The
    model learns to stop short, or never to stop, and every metric that reads the whole answer
    falls. It looks like bad data and is a setting.

    How to fix: raise the sequence length to what the finding names, or shorten the rows.

    Threshold: any such row is low, above 5 % of the rows medium, above 20 % high, above half of
    them critical. An answer is cut if tokens with loss lie beyond the limit under the tool's
    own rule (right, left, LLaMA-Factory's both sides in proportion). How an answer ends is not
    looked at: SQL, code, labels and CJK text end without a full stop.

    Not assessed: where no sequence length is known. Tools that drop long rows are the business
    of ``data.rows_dropped``, those that split them cut nothing.
    """
    limit = tokens.max_seq_length
    if limit is None:
        raise NotAssessed("No sequence length is known, so nothing says where answers are cut.")
    long = long_rows(tokens, training)
    places = np.flatnonzero(long.answer_cut)
    share = len(places) / max(len(tokens.tokens), 1)
    severity = grade(share, STEPS)
    if severity is None:
        return
    full = tokens.tokens.full_supervised[places].astype(np.int64)
    lost = full - long.targets[places]
    places = places[np.argsort(-(lost / full), kind="stable")]
    longest = int(tokens.tokens.full_lengths.max())
    p99 = int(np.ceil(np.percentile(tokens.tokens.full_lengths, 99)))
    yield Finding(
        id="data.completion_truncated",
        severity=severity,
        title=f"{plural(len(places), 'row')} ({share:.1%}) "
        f"{'has its answer' if len(places) == 1 else 'have their answers'} cut at {limit:,} tokens",
        detail=f"The median of them loses {np.median(lost / full):.0%} of its answer, and with "
        f"it the end token. The limit is {limit:,} tokens ({tokens.limit_source}); long rows are "
        f"{_told(long.rule)} ({long.source}).{sample_note(tokens)}",
        fix=f"Raise the sequence length to {longest:,} to keep all rows whole, or to {p99:,} for "
        "99% of them.",
        evidence={
            "rows": len(places),
            "share": share,
            "limit": limit,
            "limit_source": tokens.limit_source,
            "rule": long.rule,
            "lost_tokens": int(lost.sum()),
            "longest": longest,
            "p99": p99,
        },
        example_ids=pick_ids(tokens.tokens.ids, places),
    )


def _told(rule: str) -> str:
    told = {"cut_left": "cut on the left", "cut_both": "cut on both sides in proportion"}
    return told.get(rule, "cut on the right")
