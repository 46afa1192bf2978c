"""Conversations that the chat template refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gradian_checks._data_grade import grade, pick_ids, plural, sample_note
from gradian_checks._data_template import is_refused, refusal_reason, require_own_template
from gradian_core.audit.facts import TokenFacts
from gradian_core.audit.samples import chat_items, tokenizer, tokens
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig
from gradian_core.text import excerpt

STEPS = ((0.50, Severity.CRITICAL), (0.05, Severity.HIGH), (0.0, Severity.MEDIUM))
_NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + "
    "'<|im_end|>\n' }}{% endfor %}"
)


@check(
    severity=Severity.CRITICAL,
    since="0.1",
    trips=lambda: {
        "tokens": tokens(
            items=chat_items(20, system="Be brief."), tokenizer=tokenizer(chat_template=_NO_SYSTEM)
        )
    },
    clean=lambda: {
        "tokens": tokens(items=chat_items(20), tokenizer=tokenizer(chat_template=_NO_SYSTEM))
    },
)
def template_rejects_rows(
    tokens: TokenFacts, training: TrainingConfig | None = None
) -> Iterator[Finding]:
    """Rows that the chat template refuses.

    Why it matters: a template raises for roles that it does not know (Gemma: no system
    message) or for turns that do not alternate. Trainers then stop, or skip the row and say so
    in one line of a long log.

    How to fix: write the system message into the first user turn, merge neighbouring turns of
    one role, or use a template that takes them.

    Threshold: any refused row is medium, above 5 % of the rows high, above half of them
    critical.

    Not assessed: where the tool writes rows with a template of its own.
    """
    require_own_template(training)
    refused = {i: refusal_reason(p) for i, p in tokens.problems.items() if is_refused(p)}
    share = len(refused) / max(len(tokens.tokens), 1)
    severity = grade(share, STEPS)
    if severity is None:
        return
    reasons = Counter(refused.values())
    told = "; ".join(f"“{excerpt(text, 120)}” ({n:,})" for text, n in reasons.most_common(3))
    yield Finding(
        id="data.template_rejects_rows",
        severity=severity,
        title=f"The chat template refuses {plural(len(refused), 'row')} ({share:.1%})",
        detail=f"It says: {told}. Trainers stop there or skip the row.{sample_note(tokens)}",
        fix=_fix(reasons.most_common(1)[0][0]),
        evidence={
            "rows": len(refused),
            "share": share,
            "reasons": {excerpt(text, 200): n for text, n in reasons.most_common(10)},
        },
        example_ids=pick_ids(tokens.tokens.ids, sorted(refused)),
    )


def _fix(reason: str) -> str:
    words = reason.lower()
    if "system" in words and "alternate" not in words:
        return "Write the system message at the head of the first user turn."
    if "alternate" in words:
        return "Merge neighbouring turns of one role, and let the user begin."
    return "Change these rows, or use a chat template that accepts them."
