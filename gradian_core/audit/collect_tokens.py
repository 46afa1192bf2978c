"""Rows as tokens, whole and cut, from one tokenisation.

Every row is tokenised without a limit; what the training run's limit leaves of it is arithmetic.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradian_core.audit.facts import TokenFacts, TokenizerFacts
from gradian_core.data.cache import encode_cached
from gradian_core.data.encode import Encoded, encode
from gradian_core.data.files import Dataset
from gradian_core.data.tokens import TokenizedRows
from gradian_core.runs.artifact import TrainingConfig

__all__ = ["SAMPLE_ABOVE", "SAMPLE_SIZE", "collect_tokens", "error_bound"]

SAMPLE_ABOVE = 200_000
"""Data sets with more rows than this are sampled: tokenising takes minutes there."""
SAMPLE_SIZE = 20_000
_SEED = 1234
_NO_LIMIT = 2**31 - 1


def collect_tokens(
    dataset: Dataset,
    tokenizer: TokenizerFacts,
    training: TrainingConfig | None = None,
    max_seq_length: int | None = None,
    *,
    cache_dir: Path | None = None,
    sample: int | None = None,
) -> TokenFacts:
    """Tokenise the rows as training did, and apply its sequence length.

    Parameters
    ----------
    dataset
        The rows.
    tokenizer
        The tokenizer of the training run.
    training
        Its settings, for ``max_seq_length``.
    max_seq_length
        Overrides the run's setting.
    cache_dir
        Where tokens are kept between runs; not kept if None.
    sample
        Rows to tokenise. None: all, and :data:`SAMPLE_SIZE` of more than :data:`SAMPLE_ABOVE`.

    Returns
    -------
    TokenFacts
        Of all rows, or of a random sample of them in the order of the file; the same one each
        time.
    """
    if sample is None:
        sample = SAMPLE_SIZE if len(dataset) > SAMPLE_ABOVE else len(dataset)
    picked = _picked(len(dataset), sample) if sample < len(dataset) else None
    if picked is not None:
        rows = (dataset[int(i)] for i in picked)
        encoded = encode(rows, tokenizer.tokenizer, max_seq_length=_NO_LIMIT, lenient=True)
    elif cache_dir is not None:
        encoded = encode_cached(
            dataset,
            tokenizer.tokenizer,
            max_seq_length=_NO_LIMIT,
            lenient=True,
            cache_dir=cache_dir,
        )
    else:
        encoded = encode(dataset, tokenizer.tokenizer, max_seq_length=_NO_LIMIT, lenient=True)
    limit, source = _limit(tokenizer, training, max_seq_length)
    notes = list(encoded.notes)
    if picked is not None:
        notes.append(
            f"{len(picked):,} of {len(dataset):,} rows were tokenised, drawn at random: shares "
            f"that need tokens are right to within {100 * error_bound(len(picked)):.1f} "
            "percentage points (95%)."
        )
    return _facts(encoded, limit, source, picked, tuple(notes))


def error_bound(sample: int) -> float:
    """Return the half-width of a 95% interval of a share, at its widest, for a random sample."""
    return float(1.96 * np.sqrt(0.25 / sample))


def _picked(total: int, sample: int) -> NDArray[np.int64]:
    chosen = np.random.default_rng(_SEED).choice(total, size=sample, replace=False)
    return np.sort(chosen).astype(np.int64)


def _limit(
    tokenizer: TokenizerFacts, training: TrainingConfig | None, given: int | None
) -> tuple[int | None, str]:
    """Return the effective limit and where it comes from."""
    limits: list[tuple[int, str]] = []
    setting = None if training is None else training.values.get("max_seq_length")
    if given is not None:
        limits.append((given, "--max-seq-length"))
    elif setting is not None and _is_length(setting.value):
        limits.append((int(setting.value), setting.source))
    if tokenizer.model_max_length is not None:
        limits.append((tokenizer.model_max_length, "model_max_length of the tokenizer"))
    return min(limits, default=(None, "no limit was found"))


def _is_length(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 1


def _facts(
    encoded: Encoded,
    limit: int | None,
    source: str,
    picked: NDArray[np.int64] | None,
    notes: tuple[str, ...],
) -> TokenFacts:
    whole = encoded.tokens
    tokens = whole if limit is None else _cut(whole, limit)
    facts = TokenFacts(
        tokens=tokens,
        max_seq_length=limit,
        limit_source=source,
        problems=encoded.problems,
        ends=_last_targets(whole),
        answer_cut=tokens.supervised_counts < whole.full_supervised,
        sampled=picked,
        notes=notes,
    )
    columns = [getattr(tokens, column.name) for column in fields(tokens) if column.name != "ids"]
    for column in (facts.ends, facts.answer_cut, *columns):
        column.setflags(write=False)
    return facts


def _cut(rows: TokenizedRows, limit: int) -> TokenizedRows:
    lengths = rows.lengths
    kept = np.minimum(lengths, limit)
    if int(kept.sum()) == len(rows.input_ids):
        return rows
    place = np.arange(len(rows.input_ids)) - np.repeat(rows.offsets[:-1], lengths)
    inside = place < limit
    return replace(
        rows,
        input_ids=rows.input_ids[inside],
        supervised=rows.supervised[inside],
        offsets=np.concatenate(([0], np.cumsum(kept))).astype(np.int64),
    )


def _last_targets(rows: TokenizedRows) -> NDArray[np.int32]:
    """Return the ``(n,)`` token id of the last target of each row, -1 without one."""
    targets = np.flatnonzero(rows.supervised)
    last = np.searchsorted(targets, rows.offsets[1:]) - 1
    if not len(targets):
        return np.full(len(rows), -1, np.int32)
    places = targets[last.clip(min=0)]
    inside = (last >= 0) & (places >= rows.offsets[:-1])
    return np.where(inside, rows.input_ids[places], -1).astype(np.int32)
