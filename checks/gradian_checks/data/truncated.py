"""Prompts that the sequence length cuts off."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._data_grade import grade, pick_ids, plural, sample_note
from gradian_checks._data_tool import long_rows
from gradian_core.audit.facts import NotAssessed, TokenFacts
from gradian_core.audit.samples import tokens, training
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

STEPS = ((0.10, Severity.MEDIUM), (0.01, Severity.LOW))


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {
        "tokens": tokens(n=50, max_seq_length=120),
        "training": training("llamafactory", overlong_rows="cut_left"),
    },
    clean=lambda: {"tokens": tokens(n=50, max_seq_length=4096)},
)
def truncated(tokens: TokenFacts, training: TrainingConfig | None = None) -> Iterator[Finding]:
    """Examples truncated at all.

    Why it matters: a prompt without its beginning (or its last turns) is not the prompt that
    the answer belongs to. The model learns to answer what it cannot see.

    How to fix: raise the sequence length, or shorten the prompts where you choose what goes.

    Threshold: rows that lose prompt tokens and keep their whole answer, above 1 % low, above
    10 % medium. A row that loses a part of its answer counts in ``data.completion_truncated``
    alone: one cause, one finding.

    Not assessed: where no sequence length is known. Rows that the tool drops are no truncated
    rows; see ``data.rows_dropped``.
    """
    limit = tokens.max_seq_length
    if limit is None:
        raise NotAssessed("No sequence length is known, so nothing says which rows are cut.")
    long = long_rows(tokens, training)
    places = np.flatnonzero(long.prompt_cut)
    share = len(places) / max(len(tokens.tokens), 1)
    severity = grade(share, STEPS)
    if severity is None:
        return
    places = places[np.argsort(-tokens.tokens.full_lengths[places], kind="stable")]
    longest = int(tokens.tokens.full_lengths[places[0]])
    yield Finding(
        id="data.truncated",
        severity=severity,
        title=f"{plural(len(places), 'row')} ({share:.1%}) "
        f"{'loses a part of its prompt' if len(places) == 1 else 'lose a part of their prompts'}",
        detail=f"They are longer than {limit:,} tokens ({tokens.limit_source}); what is cut "
        f"holds no target of the loss ({long.source}).{sample_note(tokens)}",
        fix=f"Raise the sequence length to {longest:,}, or shorten these prompts yourself.",
        evidence={
            "rows": len(places),
            "share": share,
            "limit": limit,
            "limit_source": tokens.limit_source,
            "rule": long.rule,
            "longest": longest,
        },
        example_ids=pick_ids(tokens.tokens.ids, places),
    )
