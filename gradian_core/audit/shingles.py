"""Rows as sets of word triples, without what all rows share.

Instructions, system prompts and other boilerplate would make every two rows alike. What starts
or ends the prompt, or the answer, of half the rows is therefore left out, and so are system
turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from gradian_core.audit.hashing import fold
from gradian_core.data.example import Example

__all__ = ["Shingles", "shingle"]

Hashes = NDArray[np.uint64]

_BATCH = 2048
_BOILERPLATE_SAMPLE = 2000
_LONGEST_BOILERPLATE = 400
_PARTS = 2
# Scripts that are written without spaces: each letter counts as a word.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
    r"|[^\s\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)
_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class Shingles:
    """Hashes of the word triples of rows.

    Parameters
    ----------
    hashes
        Flat uint64; a triple that a row holds twice is there twice.
    offsets
        ``(n + 1,)`` uint64: row *i* lies at ``offsets[i]:offsets[i + 1]``.
    """

    hashes: Hashes
    offsets: Hashes

    def of(self, row: int) -> frozenset[int]:
        """Return the triples of a row as a set."""
        return frozenset(self.hashes[self.offsets[row] : self.offsets[row + 1]].tolist())

    def take(self, rows: NDArray[np.int64]) -> Shingles:
        """Return the triples of some rows, in the order given."""
        sizes = np.diff(self.offsets)[rows].astype(np.int64)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        starts = self.offsets[:-1][rows].astype(np.int64)
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
        return Shingles(self.hashes[places], offsets.astype(np.uint64))


def shingle(examples: Iterable[Example]) -> Shingles:
    """Return the word triples of the varying part of each row; read once, as a stream."""
    stream = iter(examples)
    head = list(islice(stream, _BOILERPLATE_SAMPLE))
    first = _Words.of(head)
    boilerplate = [_boilerplate(first, part) for part in range(_PARTS)]
    hashes: list[Hashes] = []
    sizes: list[NDArray[np.int64]] = []
    for words in chain([first], _batches(stream)):
        flat, counts = _triples(words, boilerplate)
        hashes.append(flat)
        sizes.append(counts)
    offsets = np.concatenate(([0], np.cumsum(np.concatenate(sizes)))).astype(np.uint64)
    return Shingles(np.concatenate(hashes), offsets)


@dataclass(frozen=True, slots=True, eq=False)
class _Words:
    """Word hashes of the parts of rows: prompt, answer, prompt, answer, …."""

    hashes: Hashes
    offsets: NDArray[np.int64]

    @staticmethod
    def of(examples: Sequence[Example]) -> _Words:
        from rensa import RMinHash  # type: ignore[import-untyped]

        parts = [words for example in examples for words in _words(example)]
        hashed = RMinHash.hash_token_sets(parts)
        sizes = np.fromiter(map(len, hashed), np.int64, len(hashed))
        flat = np.fromiter(chain.from_iterable(hashed), np.uint64, int(sizes.sum()))
        return _Words(flat, np.concatenate(([0], np.cumsum(sizes))))


def _batches(stream: Iterator[Example]) -> Iterator[_Words]:
    while batch := list(islice(stream, _BATCH)):
        yield _Words.of(batch)


def _words(example: Example) -> tuple[list[str], list[str]]:
    if example.text is not None:
        return _split(example.text), []
    prompt = [turn.content for turn in example.prompt if turn.role != "system"]
    return _split("\n".join(prompt)), _split(example.answer or "")


def _split(text: str) -> list[str]:
    text = fold(text).lower()
    return text.split() if text.isascii() else _UNSPACED.findall(text)


def _boilerplate(words: _Words, part: int) -> tuple[Hashes, Hashes]:
    """Return the words with which at least half the rows start, and end, this part."""
    starts, ends = words.offsets[:-1][part::_PARTS], words.offsets[1:][part::_PARTS]
    return _common(words.hashes, starts, ends, 1), _common(words.hashes, ends - 1, starts - 1, -1)


def _common(hashes: Hashes, first: NDArray[np.int64], stop: NDArray[np.int64], step: int) -> Hashes:
    found: list[np.uint64] = []
    need = max(2, (len(first) + 1) // 2)
    places, stop = first.copy(), stop.copy()
    while len(found) < _LONGEST_BOILERPLATE:
        inside = places != stop
        places, stop = places[inside], stop[inside]
        if len(places) < need:
            break
        values, counts = np.unique(hashes[places], return_counts=True)
        best = int(counts.argmax())
        if counts[best] < need:
            break
        same = hashes[places] == values[best]
        places, stop = places[same] + step, stop[same]
        found.append(values[best])
    return np.array(found, np.uint64)


def _triples(
    words: _Words, boilerplate: Sequence[tuple[Hashes, Hashes]]
) -> tuple[Hashes, NDArray[np.int64]]:
    starts, ends = words.offsets[:-1].copy(), words.offsets[1:].copy()
    for part, (head, tail) in enumerate(boilerplate):
        _strip(words.hashes, starts[part::_PARTS], ends[part::_PARTS], head, 1)
        _strip(words.hashes, starts[part::_PARTS], ends[part::_PARTS], tail, -1)
    lengths = ends - starts
    # A part of one or two words is one shingle.
    counts = np.where(lengths > 0, np.maximum(lengths - 2, 1), 0)
    base = np.concatenate(([0], np.cumsum(counts)))
    places = np.arange(base[-1]) + np.repeat(starts - base[:-1], counts)
    last = np.repeat(ends, counts) - 1
    mixed = np.zeros(len(places), np.uint64)
    for distance, multiplier in enumerate(_MULTIPLIERS):
        value = words.hashes[np.minimum(places + distance, last)] + np.uint64(distance)
        mixed ^= _mix(value * multiplier)
    return mixed, counts.reshape(-1, _PARTS).sum(axis=1)


def _strip(
    hashes: Hashes,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    common: Hashes,
    step: int,
) -> None:
    """Move the starts, or the ends for a step of -1, past what is common; in place."""
    edge = starts if step == 1 else ends
    alive = np.ones(len(starts), np.bool_)
    for value in common:
        alive &= starts < ends
        at = np.flatnonzero(alive)
        places = edge[at] if step == 1 else edge[at] - 1
        alive[at] = hashes[places] == value
        edge[alive] += step


def _mix(values: Hashes) -> Hashes:
    values ^= values >> np.uint64(32)
    values *= np.uint64(0xD6E8FEB86659FD93)
    values ^= values >> np.uint64(29)
    return values
