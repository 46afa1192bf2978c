"""What many rows begin or end with, such as an instruction, found and taken away."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from gradian_core.audit.hashing import fold
from gradian_core.data.example import Example

__all__ = ["PARTS", "Hashes", "Templates", "Words", "find_templates"]

Hashes = NDArray[np.uint64]
Templates = tuple[tuple[tuple[Hashes, ...], tuple[Hashes, ...]], ...]
"""For each part of a row: beginnings and endings, as word hashes from the outside inwards."""

PARTS = 2
"""A row is its prompt and its answer."""
SHARE, LEAST = 0.1, 10
"""A beginning is a template from this share, and this number, of the sample's rows on."""
_HEAD = 4
"""Words that a template has at least: those that rows are told apart by."""

# Scripts that are written without spaces: each letter counts as a word.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
    r"|[^\s\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Word hashes of the parts of rows: prompt, answer, prompt, answer, ….

    Parameters
    ----------
    hashes
        Flat uint64.
    offsets
        ``(2 n + 1,)`` int64: part *k* lies at ``offsets[k]:offsets[k + 1]``.
    """

    hashes: Hashes
    offsets: NDArray[np.int64]

    @staticmethod
    def of(examples: Sequence[Example]) -> Words:
        """Split rows into words."""
        from rensa import RMinHash  # type: ignore[import-untyped]

        parts = [words for example in examples for words in _words(example)]
        hashed = RMinHash.hash_token_sets(parts)
        sizes = np.fromiter(map(len, hashed), np.int64, len(hashed))
        flat = np.fromiter(chain.from_iterable(hashed), np.uint64, int(sizes.sum()))
        return Words(flat, np.concatenate(([0], np.cumsum(sizes))))

    def without(self, templates: Templates) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where each part starts and ends once templates are taken away from it."""
        starts, ends = self.offsets[:-1].copy(), self.offsets[1:].copy()
        for part, (beginnings, endings) in enumerate(templates):
            # Views: what is moved there is moved here.
            first, stop = starts[part::PARTS], ends[part::PARTS]
            first += _shared(self.hashes, first, stop - first, beginnings, 1)
            stop -= _shared(self.hashes, stop - 1, stop - first, endings, -1)
        return starts, ends


def find_templates(words: Words) -> Templates:
    """Find what many of some rows begin and end with."""
    found = []
    for part in range(PARTS):
        starts, ends = words.offsets[:-1][part::PARTS], words.offsets[1:][part::PARTS]
        beginnings = _frequent(words.hashes, starts, ends - starts, 1)
        endings = _frequent(words.hashes, ends - 1, ends - starts, -1)
        found.append((beginnings, endings))
    return tuple(found)


def _words(example: Example) -> tuple[list[str], list[str]]:
    if example.text is not None:
        return _split(example.text), []
    prompt = [turn.content for turn in example.prompt if turn.role != "system"]
    return _split("\n".join(prompt)), _split(example.answer or "")


def _split(text: str) -> list[str]:
    text = fold(text).lower()
    return text.split() if text.isascii() else _UNSPACED.findall(text)


def _frequent(
    hashes: Hashes, edges: NDArray[np.int64], lengths: NDArray[np.int64], step: int
) -> tuple[Hashes, ...]:
    need = max(LEAST, int(np.ceil(SHARE * len(edges))))
    long = edges[lengths >= _HEAD]
    if len(long) < need:
        return ()
    heads = hashes[long[:, None] + step * np.arange(_HEAD)]
    kinds, group, counts = np.unique(heads, axis=0, return_inverse=True, return_counts=True)
    found = []
    for kind in np.flatnonzero(counts >= need):
        members = group.ravel() == kind
        inner = long[members] + step * _HEAD
        rest = lengths[lengths >= _HEAD][members] - _HEAD
        tail = _agreed(hashes, inner, rest, step, need=(len(inner) + 1) // 2)
        found.append(np.concatenate([kinds[kind], tail]))
    return tuple(found)


def _agreed(
    hashes: Hashes, places: NDArray[np.int64], left: NDArray[np.int64], step: int, *, need: int
) -> Hashes:
    """Return the words on which at least so many rows agree, from here on."""
    found: list[np.uint64] = []
    while True:
        places, left = places[left > 0], left[left > 0]
        if len(places) < need:
            return np.array(found, np.uint64)
        values, counts = np.unique(hashes[places], return_counts=True)
        best = int(counts.argmax())
        if counts[best] < need:
            return np.array(found, np.uint64)
        same = hashes[places] == values[best]
        places, left = places[same] + step, left[same] - 1
        found.append(values[best])


def _shared(
    hashes: Hashes,
    edges: NDArray[np.int64],
    lengths: NDArray[np.int64],
    templates: tuple[Hashes, ...],
    step: int,
) -> NDArray[np.int64]:
    """Return how many words of a template each part begins (or ends) with."""
    shared = np.zeros(len(edges), np.int64)
    for template in templates:
        # At most one template fits: they differ in their first words.
        alive = np.flatnonzero(shared == 0)
        for depth, value in enumerate(template):
            alive = alive[lengths[alive] > depth]
            alive = alive[hashes[edges[alive] + step * depth] == value]
            if depth >= _HEAD - 1:
                shared[alive] = depth + 1
    return shared
