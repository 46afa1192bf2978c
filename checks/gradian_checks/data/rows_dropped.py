"""Rows that the training tool leaves out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gradian_checks._data_grade import grade, pick_ids, plural, sample_note
from gradian_checks._data_tool import drops_empty_rows, is_tool, long_rows
from gradian_core.audit.facts import ExampleFacts, NotAssessed, Style, TokenFacts
from gradian_core.audit.samples import tokens, training
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

STEPS = (
    (0.50, Severity.HIGH),
    (0.10, Severity.MEDIUM),
    (0.01, Severity.LOW),
    (0.0, Severity.INFO),
)


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {
        "tokens": tokens(n=50, max_seq_length=90),
        "training": training("axolotl", overlong_rows="drop"),
    },
    clean=lambda: {
        "tokens": tokens(n=50, max_seq_length=512),
        "training": training("axolotl", overlong_rows="drop"),
    },
)
def rows_dropped(
    tokens: TokenFacts,
    training: TrainingConfig,
    examples: ExampleFacts | None = None,
) -> Iterator[Finding]:
    """Rows that the tool silently leaves out.

    Why it matters: some tools do not cut what is too long, they drop it, and they drop rows
    without a target or with turns out of order. What is trained on is then another data set,
    without its long answers, and the epoch has fewer steps than the file suggests.

    How to fix: raise the sequence length to what the finding names, or mend the rows.

    Threshold: dropped rows are info, above 1 % low, above 10 % medium, above half of them high.
    By length: axolotl by default, LLaMA-Factory when packing. Without a target: axolotl,
    unsloth, and trl from 1.9.0 on. Turns that do not alternate, in rows without tools:
    LLaMA-Factory.

    Not assessed: without a run, because what is dropped depends on the tool.
    """
    if not len(tokens.tokens):
        raise NotAssessed("There are no rows.")
    reasons = _reasons(tokens, training, examples)
    gone = np.zeros(len(tokens.tokens), np.bool_)
    counts = {}
    for reason, rows in reasons.items():
        counts[reason] = int((rows & ~gone).sum())
        gone |= rows
    places = np.flatnonzero(gone)
    share = len(places) / len(gone)
    severity = grade(share, STEPS)
    if severity is None:
        return
    left = len(gone) - len(places)
    longest = int(tokens.tokens.full_lengths.max())
    told = "; ".join(f"{reason} ({count:,})" for reason, count in counts.items() if count)
    by_length = counts.get(_TOO_LONG, 0)
    yield Finding(
        id="data.rows_dropped",
        severity=severity,
        title=f"{training.tool} leaves out {plural(len(places), 'row')} ({share:.1%}); "
        f"{left:,} of {len(gone):,} are left",
        detail=f"Reasons: {told}.{sample_note(tokens)}",
        fix=f"Raise the sequence length to {longest:,} to keep the long rows."
        if 2 * by_length >= len(places)
        else "Mend these rows, or remove them from the file so that it says what is trained on.",
        evidence={
            "rows": len(places),
            "left": left,
            "share": share,
            "reasons": {reason: count for reason, count in counts.items() if count},
            "limit": tokens.max_seq_length,
            "longest": longest,
        },
        example_ids=pick_ids(tokens.tokens.ids, places),
    )


_TOO_LONG = "longer than the sequence length"


def _reasons(
    tokens: TokenFacts, training: TrainingConfig, examples: ExampleFacts | None
) -> dict[str, NDArray[np.bool_]]:
    long = long_rows(tokens, training)
    reasons = {_TOO_LONG: long.dropped}
    if drops_empty_rows(training):
        reasons["no token to learn from"] = (long.targets == 0) & ~long.dropped
    if is_tool(training, "llamafactory") and examples is not None:
        styles = examples.styles if tokens.sampled is None else examples.styles[tokens.sampled]
        reasons["turns that do not alternate"] = (styles & Style.BROKEN_TURNS) != 0
    return reasons
