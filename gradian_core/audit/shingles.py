"""Rows as sets of word triples, without what many rows share.

Instructions and other templates would make every two rows of a task alike. Words with which the
prompt, or the answer, of a tenth of the rows starts or ends are therefore left out, and so are
system turns. A text that more than a tenth of the rows repeat counts as a template, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from gradian_core.audit.templates import PARTS, Hashes, Templates, Words, find_templates
from gradian_core.data.example import Example

__all__ = ["Shingles", "shingle"]

_BATCH = 2048
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


def shingle(examples: Iterable[Example], sample: Sequence[Example]) -> Shingles:
    """Return the word triples of the varying part of each row.

    Parameters
    ----------
    examples
        The rows; read once, as a stream.
    sample
        Different rows from all over the data set, in which templates are looked for.
    """
    templates = find_templates(Words.of(sample))
    hashes: list[Hashes] = []
    sizes: list[NDArray[np.int64]] = []
    stream = iter(examples)
    while batch := list(islice(stream, _BATCH)):
        flat, counts = _triples(Words.of(batch), templates)
        hashes.append(flat)
        sizes.append(counts)
    offsets = np.concatenate(([0], np.cumsum(np.concatenate(sizes)))).astype(np.uint64)
    return Shingles(np.concatenate(hashes), offsets)


def _triples(words: Words, templates: Templates) -> tuple[Hashes, NDArray[np.int64]]:
    starts, ends = words.without(templates)
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
    return mixed, counts.reshape(-1, PARTS).sum(axis=1)


def _mix(values: Hashes) -> Hashes:
    values ^= values >> np.uint64(32)
    values *= np.uint64(0xD6E8FEB86659FD93)
    values ^= values >> np.uint64(29)
    return values
