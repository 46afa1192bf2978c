"""Rows on which there is no loss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gradian_checks._data_grade import grade, pick_ids, plural, sample_note
from gradian_checks._data_template import has_markers, is_refused
from gradian_checks._data_tool import (
    drops_empty_rows,
    is_before,
    is_loss_stated,
    is_tool,
    long_rows,
    loss_on,
)
from gradian_core.audit.facts import NotAssessed, TokenFacts, TokenizerFacts
from gradian_core.audit.samples import tokens
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

STEPS = (
    (1 / 3, Severity.CRITICAL),
    (0.20, Severity.HIGH),
    (0.05, Severity.MEDIUM),
    (0.0, Severity.LOW),
)
_FILLED = "the prompt fills the sequence length"
EVAL_STEPS = ((0.50, Severity.HIGH), (0.05, Severity.MEDIUM), (0.0, Severity.LOW))


@check(
    severity=Severity.CRITICAL,
    since="0.1",
    trips=lambda: {"tokens": tokens(n=50, max_seq_length=60)},
    clean=lambda: {"tokens": tokens(n=50)},
)
def no_supervised_tokens(
    tokens: TokenFacts,
    training: TrainingConfig | None = None,
    tokenizer: TokenizerFacts | None = None,
    eval_tokens: TokenFacts | None = None,
) -> Iterator[Finding]:
    """Examples that train on nothing.

    Why it matters: a row without a target of the loss does no work at all. It makes no error
    and no bad loss curve; a batch of such rows has a loss of 0 or NaN, and no attribution can
    see it, because its gradient is zero.

    How to fix: depends on the reason, which the finding gives: raise the sequence length where
    the prompt fills it, add the missing assistant turn, mend the template or its markers.

    Threshold: any such row is low, above 5 % of the rows medium, above 20 % high, above a third
    critical (292 of 800 rows were a run doing a third of its work for nothing). Also critical:
    ``assistant_only_loss`` in trl before 1.1.0 with a template that has no
    ``{% generation %}`` marker. Rows that the template refuses are counted by
    ``data.template_rejects_rows``, rows that the tool drops for their length by
    ``data.rows_dropped``. In eval rows they make the eval loss NaN: at most high.

    Not assessed: for preference data and where prompts are trained on as well, in which case
    every row has targets.
    """
    stage = None if training is None else training.get("stage")
    if stage not in (None, "sft", "pt"):
        raise NotAssessed(f"The run is {stage}, whose loss is not taken on the tokens of answers.")
    loss = loss_on(training, prompted=False)
    if loss == "markers" and tokenizer is not None and _unmarked(training, tokenizer):
        yield _no_markers(len(tokens.tokens), training)
        return
    if loss == "all" and is_loss_stated(training):
        raise NotAssessed("The run trains on prompts as well, so every row has targets.")
    yield from _rows(tokens, training)
    if eval_tokens is not None:
        yield from _eval_rows(eval_tokens, training)


def _without_targets(
    tokens: TokenFacts, training: TrainingConfig | None
) -> tuple[NDArray[np.int64], Counter[str]]:
    long = long_rows(tokens, training)
    empty = (long.targets == 0) & ~long.dropped
    for place, reason in tokens.problems.items():
        if is_refused(reason):
            empty[place] = False
    places = np.flatnonzero(empty)
    reasons: Counter[str] = Counter()
    for place in places.tolist():
        if long.over[place] and tokens.tokens.full_supervised[place]:
            reasons[_FILLED] += 1
        else:
            reasons[tokens.problems.get(place, "the answer is empty")] += 1
    return places, reasons


def _rows(tokens: TokenFacts, training: TrainingConfig | None) -> Iterator[Finding]:
    places, reasons = _without_targets(tokens, training)
    share = len(places) / max(len(tokens.tokens), 1)
    severity = grade(share, STEPS)
    if severity is None:
        return
    told = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common(3))
    drops = ""
    if drops_empty_rows(training):
        drops = " The tool leaves them out, so that many rows fewer are trained on."
    yield Finding(
        id="data.no_supervised_tokens",
        severity=severity,
        title=f"{plural(len(places), 'row')} ({share:.1%}) "
        f"{'has' if len(places) == 1 else 'have'} no answer token to learn from",
        detail=f"Reasons: {told}.{drops}{sample_note(tokens)}",
        fix=_fix(reasons, tokens),
        evidence={
            "rows": len(places),
            "share": share,
            "limit": tokens.max_seq_length,
            "reasons": dict(reasons.most_common()),
        },
        example_ids=pick_ids(tokens.tokens.ids, places),
    )


def _fix(reasons: Counter[str], tokens: TokenFacts) -> str:
    first = reasons.most_common(1)[0][0]
    if first == _FILLED:
        longest = int(tokens.tokens.full_lengths.max())
        return f"Raise the sequence length (the longest row has {longest:,} tokens)."
    if "assistant" in first or "empty" in first:
        return "Give these rows an answer, or remove them."
    return "Use the template and the response markers that belong to this data."


def _eval_rows(tokens: TokenFacts, training: TrainingConfig | None) -> Iterator[Finding]:
    places, reasons = _without_targets(tokens, training)
    share = len(places) / max(len(tokens.tokens), 1)
    severity = grade(share, EVAL_STEPS)
    if severity is None:
        return
    yield Finding(
        id="data.no_supervised_tokens",
        severity=severity,
        title=f"{plural(len(places), 'eval row')} ({share:.1%}) "
        f"{'has' if len(places) == 1 else 'have'} no token to measure the loss on",
        detail="A batch of such rows has an eval loss of NaN. "
        f"Reasons: {'; '.join(f'{r} ({n:,})' for r, n in reasons.most_common(3))}.",
        fix="Remove these rows from the eval set, or give them answers.",
        evidence={"eval_rows": len(places), "share": share, "reasons": dict(reasons)},
    )


def _unmarked(training: TrainingConfig | None, tokenizer: TokenizerFacts) -> bool:
    own = None if training is None else training.get("chat_template")
    return (
        is_tool(training, "trl")
        and is_before(training, (1, 1)) is True
        and own is None
        and tokenizer.chat_template is not None
        and not has_markers(tokenizer.chat_template)
    )


def _no_markers(rows: int, training: TrainingConfig | None) -> Finding:
    version = "" if training is None else training.version
    return Finding(
        id="data.no_supervised_tokens",
        severity=Severity.CRITICAL,
        title="assistant_only_loss is on, and the chat template marks no answers",
        detail="Without {% generation %} markers in the template every token is masked: "
        f"trl {version} has no loss on any of the {plural(rows, 'row')}, or refuses them.",
        fix="Use a template with {% generation %} markers, prompt and completion columns, or "
        "trl 1.1.0 or newer, which brings such templates for known families.",
        evidence={"rows": rows, "assistant_only_loss": True, "trl": version},
    )
