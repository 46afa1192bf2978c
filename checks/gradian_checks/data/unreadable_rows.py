"""``data.unreadable_rows``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gradian_checks._data_grade import plural
from gradian_core.audit import samples
from gradian_core.audit.facts import ExampleFacts, NotAssessed
from gradian_core.check import check
from gradian_core.data.rejected import Rejected
from gradian_core.findings import Finding, Severity

_MANY = 0.1


def _damaged() -> ExampleFacts:
    why = "train.jsonl:7: not JSON at column 31: unterminated string."
    return replace(
        samples.rows(n=50),
        rejected=Rejected(count=1, total=51, reasons=(why,), lines=(7,)),
    )


@check(
    severity=Severity.CRITICAL,
    since="0.1",
    trips=lambda: {"examples": _damaged()},
    clean=lambda: {"examples": samples.rows(n=50)},
)
def unreadable_rows(
    examples: ExampleFacts | None = None, eval_examples: ExampleFacts | None = None
) -> Iterator[Finding]:
    """Rows that cannot be read.

    Why it matters: a training tool stops at such a row, or leaves it out and says nothing; then
    the model was not trained on the data that you think. A line that breaks off is often the end
    of a copy that was never finished.

    How to fix: correct or remove the rows at the lines that are named; each row is one JSON
    object of a known shape, in UTF-8.

    Threshold: any row that is no JSON object, fits no known shape, is not UTF-8 or is longer than
    64 MiB, in the training data or the eval set (high); more than 10% of either critical. The
    other checks judge the rows that are left.

    Not assessed: without rows.
    """
    sets = {"training row": examples, "eval row": eval_examples}
    given = {what: facts.rejected for what, facts in sets.items() if facts is not None}
    if not given:
        raise NotAssessed("No rows were given.")
    for what, rejected in given.items():
        if not rejected.count:
            continue
        share = rejected.count / rejected.total
        more = rejected.count - len(rejected.reasons)
        yield Finding(
            id="data.unreadable_rows",
            severity=Severity.CRITICAL if share > _MANY else Severity.HIGH,
            title=f"{plural(rejected.count, what)} of {rejected.total:,} ({share:.1%}) "
            "cannot be read",
            detail=" ".join(rejected.reasons) + (f" And {more:,} more." if more > 0 else ""),
            fix="Correct or remove the rows at these lines, and look whether the file is complete.",
            evidence={
                "rows": rejected.count,
                "share": share,
                "lines": list(rejected.lines),
                "reasons": list(rejected.reasons),
            },
        )
