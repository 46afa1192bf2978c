"""Rows that are there more than once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._data_grade import grade, pick_ids, plural
from gradian_core.audit.facts import ExampleFacts
from gradian_core.audit.samples import items, rows
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

STEPS = ((0.20, Severity.HIGH), (0.05, Severity.MEDIUM), (0.01, Severity.LOW))
UPWEIGHTED_COPIES = 3
"""From so many copies on, the same number of each, copies look meant."""
UPWEIGHTED_ROWS = 5


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {"examples": rows(items=[*items(100), *items(30)])},
    clean=lambda: {"examples": rows(n=200)},
)
def duplicates(examples: ExampleFacts, training: TrainingConfig | None = None) -> Iterator[Finding]:
    """Exact duplicate examples.

    Why it matters: a row that is there three times counts three times, in each epoch. The model
    learns it by heart and the rows beside it less, and a held-out set that was split off at
    random holds rows that were trained on.

    How to fix: keep one row of each group; the finding names the surplus ones.

    Threshold: surplus copies above 1 % of the rows are low, above 5 % medium, above 20 % high.
    Two rows are the same if system, history, prompt, answer and tools are, apart from Unicode
    form (NFC) and white space: one label under many prompts, or one prompt under two system
    messages, is no duplicate. Where at least 5 rows have the same number of copies, three or
    more, and the others one, the copies look like weights and the finding is info. Lee et al.
    (2022) measured what exact duplicates do to memorisation.

    Not assessed: never.
    """
    _, first, group, sizes = np.unique(
        examples.content, return_index=True, return_inverse=True, return_counts=True
    )
    surplus = len(examples) - len(sizes)
    share = surplus / max(len(examples), 1)
    severity = grade(share, STEPS)
    if severity is None:
        return
    repeated = sizes[sizes > 1]
    meant = bool(
        repeated.min() == repeated.max() >= UPWEIGHTED_COPIES
        and UPWEIGHTED_ROWS <= len(repeated) < len(sizes)
    )
    is_copy = np.ones(len(examples), np.bool_)
    is_copy[first] = False
    copies = np.flatnonzero(is_copy)
    copies = copies[np.argsort(-sizes[group[copies]], kind="stable")]
    epochs = None if training is None else training.get("num_train_epochs")
    seen = _times_seen(int(repeated.max()), epochs)
    yield Finding(
        id="data.duplicates",
        severity=Severity.INFO if meant else severity,
        title=f"{plural(surplus, 'row')} ({share:.1%}) "
        f"{'is a copy' if surplus == 1 else 'are copies'} of others",
        detail=f"{plural(len(repeated), 'row')} occur more than once, the most frequent "
        f"{int(repeated.max()):,} times{seen}."
        + (" All have the same number of copies, as if to give them weight." if meant else ""),
        fix=""
        if meant
        else f"Remove the {plural(surplus, 'surplus copy', 'surplus copies')}; "
        f"{plural(len(sizes), 'row')} stay.",
        evidence={
            "rows": len(examples),
            "surplus": surplus,
            "share": share,
            "groups": len(repeated),
            "most_copies": int(repeated.max()),
            "epochs": epochs,
        },
        example_ids=pick_ids(examples.ids, copies),
    )


def _times_seen(copies: int, epochs: object) -> str:
    if isinstance(epochs, bool) or not isinstance(epochs, (int, float)) or epochs <= 0:
        return ""
    return f", which training sees {copies * epochs:,.0f} times in {epochs:g} epochs"
