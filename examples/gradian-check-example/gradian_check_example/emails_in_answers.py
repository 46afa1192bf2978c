"""Whether the model learns somebody's address."""

import re
from collections.abc import Iterator

from gradian_core.audit.facts import ExampleFacts
from gradian_core.audit.samples import items, rows
from gradian_core.check import check
from gradian_core.findings import Finding, Severity

ADDRESS = re.compile(r"[\w.+-]+@([\w-]+(?:\.[\w-]+)+)")
# Domains and endings that are set aside for examples (RFC 2606).
EXAMPLES = re.compile(r"(?:.*\.)?(?:example\.(?:com|net|org)|[\w-]+\.(?:example|test|invalid))")

LEAK = {"prompt": "How do I reach billing?", "completion": "Write to ann.lee@acme-corp.com."}


@check(
    severity=Severity.HIGH,
    since="1.0.0",
    trips=lambda: {"examples": rows(items=[*items(10), LEAK])},
    clean=lambda: {"examples": rows(n=10)},
)
def emails_in_answers(examples: ExampleFacts) -> Iterator[Finding]:
    """Email addresses in answers.

    Why it matters: a fine-tuned model repeats them, to anybody.

    How to fix: replace them by an address of example.com.

    Threshold: one address that is not set aside for examples.
    """
    found = [row.id for row in examples.rows if _leaks(row.answer or "")]
    if not found:
        return
    yield Finding(
        id="house.emails_in_answers",
        severity=Severity.HIGH,
        title=f"Email addresses in the answers of {len(found)} of {len(examples)} rows",
        detail="A fine-tuned model repeats what its answers hold, to anybody.",
        fix="Replace them by an address of example.com.",
        evidence={"rows": len(found)},
        example_ids=tuple(found),
    )


def _leaks(answer: str) -> bool:
    return any(not EXAMPLES.fullmatch(domain.lower()) for domain in ADDRESS.findall(answer))
