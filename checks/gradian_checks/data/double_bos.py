"""Rows that start with two begin-of-sequence tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._data_grade import grade, pick_ids, plural
from gradian_checks._data_rows import read, spread
from gradian_core.audit.facts import ExampleFacts, NotAssessed, TokenizerFacts
from gradian_core.audit.samples import rows, tokenizer
from gradian_core.check import check
from gradian_core.data.tokenizing import RowTokenizer
from gradian_core.findings import Finding, Severity

STEPS = ((0.50, Severity.MEDIUM), (0.01, Severity.LOW))
_SAMPLE = 1000


def _texts(start: str) -> dict[str, object]:
    texts = [f"{start}The market opens at {hour}." for hour in range(20)]
    return {
        "examples": rows(items=[{"text": text} for text in texts]),
        "tokenizer": tokenizer(bos="<s>", adds_bos=True),
    }


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: _texts("<s>"),
    clean=lambda: _texts(""),
)
def double_bos(examples: ExampleFacts, tokenizer: TokenizerFacts) -> Iterator[Finding]:
    """Rendered text that gets a second begin-of-sequence token.

    Why it matters: the template wrote the token into the text, and the tokenizer adds one more
    in front. Training then shows a beginning that inference does not have, or the other way
    round; some models lose a good deal by it.

    How to fix: remove the token from the text, or tokenise with ``add_special_tokens=False``.

    Threshold: rows of raw text that start with the token that the tokenizer adds by itself,
    above 1 % low, above half of them medium. Rows of messages are rendered and tokenised in one
    step, which adds nothing.

    Not assessed: without rows of raw text, and where the tokenizer adds no such token.
    """
    raw = np.flatnonzero(examples.turns == 0)
    if not len(raw):
        raise NotAssessed("No rows of raw text: templates and tokenizers do not meet twice.")
    start = RowTokenizer(tokenizer.tokenizer).leading_text
    if not start:
        raise NotAssessed("The tokenizer adds no begin-of-sequence token by itself.")
    seen = list(read(examples, spread(raw, _SAMPLE)))
    places = [place for place, row in seen if (row.text or "").startswith(start)]
    share = len(places) / len(seen)
    severity = grade(share, STEPS)
    if severity is None:
        return
    yield Finding(
        id="data.double_bos",
        severity=severity,
        title=f"{share:.1%} of the rows start with {start}, and the tokenizer adds another",
        detail=f"Seen in {plural(len(seen), 'row')} of raw text. Each of them starts with the "
        "token twice, unless the trainer tokenises without special tokens.",
        fix=f"Remove {start} from the text, or tokenise with add_special_tokens=False.",
        evidence={"share": share, "rows_seen": len(seen), "bos": start},
        example_ids=pick_ids(examples.ids, places),
    )
