"""Eval rows that were trained on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gradian_checks._data_grade import grade, milder, pick_ids, plural
from gradian_core.audit.facts import ExampleFacts
from gradian_core.audit.samples import items, rows
from gradian_core.audit.similar import near_duplicate_pairs
from gradian_core.check import check
from gradian_core.findings import Finding, Severity

STEPS = ((0.10, Severity.CRITICAL), (0.01, Severity.HIGH), (0.0, Severity.MEDIUM))
_ODD = np.uint64(0x9E3779B97F4A7C15)


@check(
    severity=Severity.CRITICAL,
    since="0.1",
    trips=lambda: {"examples": rows(n=100), "eval_examples": rows(n=20)},
    clean=lambda: {
        "examples": rows(items=items(120)[:100]),
        "eval_examples": rows(items=items(120)[100:]),
    },
)
def train_eval_contamination(
    examples: ExampleFacts, eval_examples: ExampleFacts
) -> Iterator[Finding]:
    """Eval items that also appear in training.

    Why it matters: an eval row that was trained on measures memory. The score goes up whatever
    happens to the capability, and no conclusion that is drawn from it holds.

    How to fix: remove the rows from the training data, or draw another eval set.

    Threshold, as a share of the eval rows: question and answer that are in the training data
    too, any medium, above 1 % high, above 10 % critical. Nearly the same (80 % of the word
    triples, boilerplate left out) one step milder. The same question with another answer only:
    info. Rows are the same across shapes: a ``messages`` row equals its prompt and completion.

    Not assessed: without an eval set.
    """
    if not len(eval_examples):
        return
    exact = np.isin(_pairs(eval_examples), _pairs(examples))
    if bool(exact.any()):
        yield _exact(examples, eval_examples, exact)
    near = near_duplicate_pairs(eval_examples, examples)
    chosen = ~exact[near.left]
    close = np.unique(near.left[chosen])
    severity = grade(len(close) / len(eval_examples), STEPS)
    if severity is not None:
        yield _near(examples, eval_examples, close, near.right[chosen], milder(severity))
    asked = np.isin(eval_examples.question, examples.question) & ~exact
    asked[close] = False
    if bool(asked.any()):
        yield _asked(examples, eval_examples, asked)


def _pairs(facts: ExampleFacts) -> NDArray[np.uint64]:
    """Return ``(n,)`` uint64 hashes of question and answer together."""
    return facts.question * _ODD + facts.answer


def _exact(
    examples: ExampleFacts, eval_examples: ExampleFacts, exact: NDArray[np.bool_]
) -> Finding:
    count = int(exact.sum())
    share = count / len(eval_examples)
    trained = np.flatnonzero(np.isin(_pairs(examples), _pairs(eval_examples)))
    return Finding(
        id="data.train_eval_contamination",
        severity=grade(share, STEPS) or Severity.MEDIUM,
        title=f"{plural(count, 'eval item')} ({share:.1%}) also "
        f"{'appears' if count == 1 else 'appear'} in the training data",
        detail="Question and answer are the same. On these items the evaluation measures memory.",
        fix=f"Remove the {plural(len(trained), 'training row')} that the finding names, or "
        "evaluate on rows that were not trained on.",
        evidence={
            "eval_rows": count,
            "eval_total": len(eval_examples),
            "share": share,
            "training_rows": len(trained),
            "eval_ids": list(pick_ids(eval_examples.ids, np.flatnonzero(exact)[:20])),
        },
        example_ids=pick_ids(examples.ids, trained),
    )


def _near(
    examples: ExampleFacts,
    eval_examples: ExampleFacts,
    close: NDArray[np.int64],
    trained: NDArray[np.int64],
    severity: Severity,
) -> Finding:
    share = len(close) / len(eval_examples)
    return Finding(
        id="data.train_eval_contamination",
        severity=severity,
        title=f"{plural(len(close), 'eval item')} ({share:.1%}) "
        f"{'is' if len(close) == 1 else 'are'} nearly the same as training rows",
        detail="They share at least 80% of their word triples with a training row, with what "
        "most rows have in common left out.",
        fix="Remove these training rows, or evaluate on other rows.",
        evidence={
            "eval_rows": len(close),
            "eval_total": len(eval_examples),
            "share": share,
            "eval_ids": list(pick_ids(eval_examples.ids, close[:20])),
        },
        example_ids=pick_ids(examples.ids, np.unique(trained)),
    )


def _asked(
    examples: ExampleFacts, eval_examples: ExampleFacts, asked: NDArray[np.bool_]
) -> Finding:
    count = int(asked.sum())
    trained = np.flatnonzero(np.isin(examples.question, eval_examples.question[asked]))
    return Finding(
        id="data.train_eval_contamination",
        severity=Severity.INFO,
        title=f"{plural(count, 'eval question')} "
        f"{'is' if count == 1 else 'are'} in the training data with another answer",
        detail="What is measured there is which of the answers was learned.",
        evidence={"eval_rows": count, "eval_total": len(eval_examples)},
        example_ids=pick_ids(examples.ids, trained),
    )
