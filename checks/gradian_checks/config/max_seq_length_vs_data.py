"""``config.max_seq_length_vs_data``."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gradian_checks._read import count, flag, known, origin, text
from gradian_core.audit import samples
from gradian_core.audit.facts import ExampleFacts, NotAssessed, TokenFacts
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_BANDS = ((0.20, Severity.HIGH), (0.05, Severity.MEDIUM), (0.005, Severity.INFO))
_CHARS_A_TOKEN = 4.0
_ROOMY = 8.0
_WORST = 10
_FATE = {
    "drop": "dropped",
    "cut_left": "cut at the left",
    "cut_both": "cut in prompt and answer",
}


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {
        "training": samples.training(max_seq_length=48),
        "tokens": samples.tokens(n=200, max_seq_length=48),
    },
    clean=lambda: {
        "training": samples.training(max_seq_length=1024),
        "tokens": samples.tokens(n=200, max_seq_length=1024),
    },
)
def max_seq_length_vs_data(
    training: TrainingConfig | None = None,
    tokens: TokenFacts | None = None,
    examples: ExampleFacts | None = None,
) -> Iterator[Finding]:
    """max_seq_length shorter than the data needs.

    Why it matters: longer rows are cut, mostly at the end, which is where the answer is; axolotl
    drops them. Either way the model is not trained on what the file says, and no tool stops for
    it: trl cuts at 1,024 tokens and axolotl drops above 512 unless told otherwise.

    How to fix: raise ``max_seq_length`` to the length that the finding names.

    Threshold: rows over the limit: more than 0.5% info, more than 5% medium, more than 20% high.
    A limit of more than 8 times the 99th percentile, with every row padded to it, is low. The
    limit is the smallest of the tool's, the tokenizer's and the one given. Without a tokenizer,
    lengths are estimated at four characters a token (info at most, since Chinese, Japanese and
    code differ two- to threefold).

    Not assessed: without rows, and where no limit is known.
    """
    if text(training, "overlong_rows") == "split":
        return
    estimated = tokens is None
    lengths: NDArray[np.float64]
    if tokens is not None:
        lengths = tokens.tokens.full_lengths.astype(np.float64)
        limit = tokens.max_seq_length
        source = tokens.limit_source
    elif examples is not None:
        lengths = (examples.prompt_chars + examples.answer_chars) / _CHARS_A_TOKEN
        limit = count(training, "max_seq_length")
        source = "" if training is None else origin(training, "max_seq_length")
    else:
        raise NotAssessed("There are no rows to measure.")
    if limit is None:
        if known(training, "max_seq_length"):
            return
        raise NotAssessed("No sequence length is recorded; give --max-seq-length.")
    over = lengths > limit
    share = float(over.mean())
    p95, p99 = (float(value) for value in np.percentile(lengths, (95, 99)))
    evidence: dict[str, object] = {
        "max_seq_length": limit,
        "source": source,
        "rows_over": int(over.sum()),
        "share_over": share,
        "p95": round(p95),
        "p99": round(p99),
        "longest": round(float(lengths.max())),
        "estimated": estimated,
    }
    severity = next((s for bound, s in _BANDS if share > bound), None)
    if severity is not None:
        need = max(64, 64 * math.ceil(p99 / 64))
        fate = _FATE.get(text(training, "overlong_rows") or "", "cut")
        yield Finding(
            id="config.max_seq_length_vs_data",
            severity=Severity.INFO if estimated else severity,
            title=(
                f"max_seq_length={limit} is too short for "
                f"{'an estimated ' if estimated else ''}{share:.1%} of the rows"
            ),
            detail=(
                f"{int(over.sum()):,} rows are {fate}; 95% of the rows fit into {round(p95):,} "
                f"tokens, 99% into {round(p99):,}. The limit is from {source}."
            ),
            fix=(
                "Give --base-model to count tokens."
                if estimated
                else f"Set max_seq_length: {need}, which holds 99% of the rows."
            ),
            evidence=evidence,
            example_ids=() if tokens is None else _longest(tokens, over),
        )
    elif (
        not estimated
        and limit > _ROOMY * p99
        and flag(training, "pad_to_max_length")
        and flag(training, "packing") is not True
    ):
        yield Finding(
            id="config.max_seq_length_vs_data",
            severity=Severity.LOW,
            title=f"Every row is padded to {limit:,} tokens; 99% need {round(p99):,} or less",
            detail="The padding costs time and memory and teaches nothing.",
            fix=f"Set max_seq_length: {64 * math.ceil(p99 / 64)}, or pad batch by batch.",
            evidence=evidence,
        )


def _longest(tokens: TokenFacts, over: NDArray[np.bool_]) -> tuple[str, ...]:
    order = np.argsort(-tokens.tokens.full_lengths, kind="stable")[:_WORST]
    return tuple(tokens.tokens.ids[i] for i in order if over[i])
