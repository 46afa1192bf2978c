"""Answers after which training shows no end token."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gradian_checks._data_grade import grade, pick_ids, plural, sample_note
from gradian_checks._data_tool import is_before, is_tool, masks_padding_by_id
from gradian_core.audit.facts import NotAssessed, TokenFacts, TokenizerFacts
from gradian_core.audit.samples import chat_items
from gradian_core.audit.samples import tokenizer as make_tokenizer
from gradian_core.audit.samples import tokens as make_tokens
from gradian_core.check import check
from gradian_core.data.tokens import Supervision
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

STEPS = ((0.50, Severity.HIGH), (0.05, Severity.MEDIUM))
_APPENDING = ("axolotl", "llamafactory", "mlx-lm", "torchtune", "unsloth")
_OPEN_TEMPLATE = (
    "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)


def _sample(template: str | None) -> dict[str, object]:
    made = make_tokenizer() if template is None else make_tokenizer(chat_template=template)
    return {"tokens": make_tokens(items=chat_items(50), tokenizer=made), "tokenizer": made}


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: _sample(_OPEN_TEMPLATE),
    clean=lambda: _sample(None),
)
def missing_eos(
    training: TrainingConfig | None = None,
    tokens: TokenFacts | None = None,
    tokenizer: TokenizerFacts | None = None,
) -> Iterator[Finding]:
    """Targets that do not end with EOS.

    Why it matters: a model that never sees an end after its answers does not learn to stop. It
    runs into the limit of generation, repeats itself, and fails every exact match on answers
    that it knew.

    How to fix: use a chat template that closes the assistant turn, or append the end token to
    each answer; where the collator masks it, choose another padding token.

    Threshold: above 5 % of the rows medium, above 50 % high. Counted are rows whose last token
    with loss is no end token *after what the tool itself appends*: trl appends one to plain
    rows from 0.16.0 on, axolotl, LLaMA-Factory, torchtune and mlx-lm always do, a plain
    transformers script does not. End tokens are the tokenizer's, the one that the template
    writes after a turn, and those of the generation config; white space that the template
    writes after the end token is looked past. With transformers' language-modelling collator
    and padding = end token, the end token is masked in every row, which is high.

    Not assessed: without tokens, unless the collator masks the end token; for plain rows
    where the tool is not known.
    """
    if training is not None and _is_masked(training, tokenizer):
        yield _masked(tokens)
        return
    if tokens is None or tokenizer is None:
        raise NotAssessed("Needs the tokens of the rows: give the data set and the base model.")
    if not tokenizer.end_tokens:
        raise NotAssessed("The tokenizer has no end token, nor does its template write one.")
    ends = _last_tokens(tokens, tokenizer)
    plain = _is_plain(tokens)
    judged = ends >= 0
    if bool((judged & plain).any()):
        appended = _appends(training)
        if appended is None and not bool((judged & ~plain).any()):
            raise NotAssessed(
                "The rows are plain text, and it is not known whether the trainer appended an "
                "end token: give the run with --run."
            )
        if appended is None:
            judged &= ~plain
        else:
            ends = np.where(plain & judged, _plain_ends(ends, tokens, tokenizer, appended), ends)
    open_ended = judged & ~np.isin(ends, list(tokenizer.end_tokens))
    total = int(judged.sum())
    places = np.flatnonzero(open_ended)
    severity = grade(len(places) / total, STEPS) if total else None
    if severity is None:
        return
    names = ", ".join(sorted(_text(tokenizer, i) for i in tokenizer.end_tokens))
    last = _most_common(ends[places])
    yield Finding(
        id="data.missing_eos",
        severity=severity,
        title=f"{plural(len(places), 'row')} ({len(places) / total:.1%}) "
        f"{'does' if len(places) == 1 else 'do'} not end with an end token",
        detail=f"The answers end with {_text(tokenizer, last)!r} for the most part; an end "
        f"token here is {names}. The model will not learn to stop.{sample_note(tokens)}",
        fix="Use a chat template that closes the assistant's turn, or append "
        f"{tokenizer.eos[0] if tokenizer.eos else 'the end token'} to each answer.",
        evidence={
            "rows": len(places),
            "share": len(places) / total,
            "end_tokens": sorted(tokenizer.end_tokens),
            "last_token": last,
            "last_token_text": _text(tokenizer, last),
        },
        example_ids=pick_ids(tokens.tokens.ids, places),
    )


def _is_masked(training: TrainingConfig, tokenizer: TokenizerFacts | None) -> bool:
    """Whether the collator takes the end token for padding and masks it."""
    if not masks_padding_by_id(training):
        return False
    eos, pad = training.get("eos_token"), training.get("pad_token")
    if tokenizer is not None:
        eos = eos or (tokenizer.eos[0] if tokenizer.eos else None)
        pad = pad or (tokenizer.pad[0] if tokenizer.pad else eos)
    # A script may say pad_token = tokenizer.eos_token and name neither.
    return pad is not None and (pad == eos or str(pad).rsplit(".", 1)[-1] == "eos_token")


def _masked(tokens: TokenFacts | None) -> Finding:
    return Finding(
        id="data.missing_eos",
        severity=Severity.HIGH,
        title="The end token is masked in every row: it is the padding token too",
        detail="The collator takes every padding token out of the loss, wherever it stands, and "
        "with it the end of each answer. The model will not learn to stop.",
        fix="Give the tokenizer a padding token of its own (an unused special token), or use a "
        "collator that masks by position.",
        evidence={} if tokens is None else {"rows": len(tokens.tokens), "share": 1.0},
        because_of="config.pad_equals_eos",
    )


def _is_plain(tokens: TokenFacts) -> NDArray[np.bool_]:
    """Return ``(n,)`` bool: rows that no chat template rendered."""
    return np.isin(tokens.tokens.supervision, (Supervision.WHOLE, Supervision.PROMPT))


def _appends(training: TrainingConfig | None) -> bool | None:
    """Whether the tool appends an end token to plain rows; None if that is not known."""
    if is_tool(training, "trl"):
        old = is_before(training, (0, 16))
        return None if old is None else not old
    if is_tool(training, *_APPENDING):
        return True
    return False if is_tool(training, "transformers") else None


def _plain_ends(
    ends: NDArray[np.int32],
    tokens: TokenFacts,
    tokenizer: TokenizerFacts,
    appended: bool,
) -> NDArray[np.int32]:
    """Return the last tokens as the tool leaves them.

    Prompt and answer rows were tokenised with an end token, which a tool that appends none does
    not have; raw text was tokenised without.
    """
    if tokenizer.eos is None:
        return ends
    if appended:
        return np.full_like(ends, tokenizer.eos[1])
    prompted = tokens.tokens.supervision == Supervision.PROMPT
    return np.where(prompted, _NO_END, ends).astype(np.int32)


_NO_END = np.iinfo(np.int32).max


def _last_tokens(tokens: TokenFacts, tokenizer: TokenizerFacts) -> NDArray[np.int32]:
    """Return the last token with loss of each row, white space after an end token left out."""
    ends = tokens.ends.copy()
    blank = _blank_tokens(tokenizer, ends)
    rows = tokens.tokens
    whole = rows.lengths == rows.full_lengths
    for place in np.flatnonzero(np.isin(ends, list(blank)) & whole):
        ids, supervised = rows.row(int(place))
        said = ids[supervised]
        solid = np.flatnonzero(~np.isin(said, list(blank)))
        if len(solid) and int(said[solid[-1]]) in tokenizer.end_tokens:
            ends[place] = said[solid[-1]]
    return ends


def _blank_tokens(tokenizer: TokenizerFacts, ends: NDArray[np.int32]) -> frozenset[int]:
    candidates = {int(i) for i in np.unique(ends) if i >= 0} - tokenizer.end_tokens
    return frozenset(i for i in candidates if not _decoded(tokenizer, i).strip())


def _decoded(tokenizer: TokenizerFacts, token: int) -> str:
    return str(tokenizer.tokenizer.decode([token]))


def _text(tokenizer: TokenizerFacts, token: int) -> str:
    return "the text itself" if token == _NO_END else _decoded(tokenizer, token)


def _most_common(values: NDArray[np.int32]) -> int:
    found, counts = np.unique(values, return_counts=True)
    return int(found[counts.argmax()])
