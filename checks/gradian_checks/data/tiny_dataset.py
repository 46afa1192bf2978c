"""Whether there are enough rows to learn from."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._data_grade import plural
from gradian_checks._data_tool import long_rows
from gradian_core.audit.facts import ExampleFacts, TokenFacts
from gradian_core.audit.samples import rows
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

STEPS = ((10, Severity.HIGH), (50, Severity.MEDIUM), (200, Severity.LOW))
"""Below so many rows, the severity beside them."""


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {"examples": rows(n=9)},
    clean=lambda: {"examples": rows(n=200)},
)
def tiny_dataset(
    examples: ExampleFacts,
    tokens: TokenFacts | None = None,
    training: TrainingConfig | None = None,
) -> Iterator[Finding]:
    """Dataset too small for reliable attribution.

    Why it matters: from a handful of rows a model learns the rows and not the task, and every
    number that is drawn from them, an influence score among them, hangs on single rows.

    How to fix: add rows. For a new skill, 200 to 1,000 good ones are a usual start; for a tone
    or a format 50 can do, if they are varied.

    Threshold: fewer than 10 rows is high, fewer than 50 medium, fewer than 200 low. OpenAI's
    fine-tuning guide sets a minimum of 10 and sees gains from 50 to 100; LIMA used 1,000. Rows
    count after a cap (``max_samples``) and without those that the tool drops for their length.

    Not assessed: never; a data set has a size.
    """
    total = left = len(examples)
    if tokens is not None and len(tokens.tokens):
        dropped = long_rows(tokens, training).dropped
        left = round(total * (1.0 - float(dropped.mean())))
    cap = None if training is None else training.get("max_samples")
    if isinstance(cap, int) and not isinstance(cap, bool) and cap > 0:
        left = min(left, cap)
    severity = next((severity for limit, severity in STEPS if left < limit), None)
    if severity is None:
        return
    less = "" if left == total else f" Of {plural(total, 'row')}, the tool trains on {left:,}."
    yield Finding(
        id="data.tiny_dataset",
        severity=severity,
        title=f"Only {plural(left, 'training row')}",
        detail="What a model takes from so few rows is the rows themselves. Audit shares and "
        f"influence scores that are drawn from them hang on single rows.{less}",
        fix="Add varied rows: 200 or more for a new skill; 50 can do for a tone or a format.",
        evidence={"rows": left, "rows_in_file": total, "enough": STEPS[-1][0]},
    )
