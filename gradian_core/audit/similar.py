"""Rows that are nearly the same.

MinHash (rensa) proposes pairs, and the exact Jaccard similarity of their word triples decides.
With 128 permutations in 16 bands, 95% of the pairs at similarity 0.8 are proposed and 99% of
those at 0.85; a pair below is never reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.audit.facts import ExampleFacts
from gradian_core.audit.shingles import Shingles, shingle
from gradian_core.data.example import Example

__all__ = ["ALIKE", "LARGEST", "SHORTEST", "SimilarPairs", "near_duplicate_pairs"]

ALIKE = 0.8
"""Jaccard similarity of the word triples from which on two rows are nearly the same."""
SHORTEST = 20
"""Rows with fewer word triples are left out: one word more or less means too much there."""
LARGEST = 250_000
"""Of more rows than this a sample is looked at, to keep the memory at some 300 MB."""

_PERMUTATIONS, _BANDS, _SEED = 128, 16, 1
_ALL_PAIRS = 32
_SAMPLE = 2000
"""Rows in which templates are looked for."""


@dataclass(frozen=True, slots=True, eq=False)
class SimilarPairs:
    """Pairs of different rows that are nearly the same.

    Parameters
    ----------
    left, right
        ``(k,)`` int64 positions; within one data set ``left < right``, else left is in the first
        and right in the other. Sorted.
    jaccard
        ``(k,)`` float64 similarity of each pair, at least :data:`ALIKE`.
    looked_at
        Rows of the (first) data set that were long enough and different from all before them.
    of
        Rows that it has, or that were drawn if it has more than :data:`LARGEST`.
    sampled
        Whether a sample was drawn: the pairs are then only some of those that there are.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    jaccard: NDArray[np.float64]
    looked_at: int
    of: int
    sampled: bool

    def __len__(self) -> int:
        return len(self.left)


def near_duplicate_pairs(examples: ExampleFacts, other: ExampleFacts | None = None) -> SimilarPairs:
    """Find rows that are nearly, but not exactly, the same.

    Rows that are equal in ``content`` are one row here. In a group of more than 32 rows that
    MinHash finds alike, each is compared with the first and its neighbours only: every row of
    the group is found, not every pair.

    Parameters
    ----------
    examples
        The rows.
    other
        Look for pairs between the two, and not within either.
    """
    sets = [examples] if other is None else [examples, other]
    picked = [_picked(facts) for facts in sets]
    sample = list(chain.from_iterable(map(_sample, sets, picked)))
    shingles = shingle(chain.from_iterable(map(_rows, sets, picked)), sample)
    border = len(picked[0])
    sizes = np.diff(shingles.offsets)
    known = np.concatenate([facts.content[rows] for facts, rows in zip(sets, picked, strict=True)])
    firsts = np.zeros(len(known), np.bool_)
    for start, end in ((0, border), (border, len(known))):
        firsts[start + np.unique(known[start:end], return_index=True)[1]] = True
    wanted = np.flatnonzero(firsts & (sizes >= SHORTEST))
    candidates = _candidates(shingles, wanted)
    if other is not None:
        candidates = {(a, b) for a, b in candidates if a < border <= b}
    found = sorted(_verified(shingles, known, candidates))
    table = np.array(found, np.float64).reshape(-1, 3)
    left, right = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
    return SimilarPairs(
        left=picked[0][left],
        right=picked[0][right] if other is None else picked[1][right - border],
        jaccard=table[:, 2],
        looked_at=int(np.count_nonzero(wanted < border)),
        of=border,
        sampled=any(len(rows) < len(facts) for facts, rows in zip(sets, picked, strict=True)),
    )


def _picked(facts: ExampleFacts) -> NDArray[np.int64]:
    if len(facts) <= LARGEST:
        return np.arange(len(facts))
    chosen = np.random.default_rng(_SEED).choice(len(facts), size=LARGEST, replace=False)
    return np.sort(chosen)


def _rows(facts: ExampleFacts, picked: NDArray[np.int64]) -> Iterator[Example]:
    wanted = np.zeros(len(facts), np.bool_)
    wanted[picked] = True
    return (example for example, keep in zip(facts.rows, wanted, strict=True) if keep)


def _sample(facts: ExampleFacts, picked: NDArray[np.int64]) -> Iterator[Example]:
    # Copies of one row would make a template of it.
    distinct = picked[np.sort(np.unique(facts.content[picked], return_index=True)[1])]
    spread = np.linspace(0, len(distinct) - 1, min(len(distinct), _SAMPLE)).astype(np.int64)
    return (facts.rows[int(place)] for place in distinct[spread])


def _candidates(shingles: Shingles, wanted: NDArray[np.int64]) -> set[tuple[int, int]]:
    from rensa import RMinHashLSH  # type: ignore[import-untyped]

    if len(wanted) < 2:
        return set()
    index = RMinHashLSH(ALIKE, _PERMUTATIONS, _BANDS)
    flags = index.query_duplicate_flags_matrix_one_shot(_digests(shingles, wanted))
    shared = wanted[np.array(flags, np.bool_)]
    if not len(shared):
        return set()
    # Only now, for the few that share a band with another row, does a signature become numbers.
    signatures = np.array(_digests(shingles, shared).to_rows(), np.uint32)
    pairs: set[tuple[int, int]] = set()
    for band in np.split(signatures, _BANDS, axis=1):
        _, group = np.unique(band, axis=0, return_inverse=True)
        order = np.argsort(group, kind="stable")
        borders = np.flatnonzero(np.diff(group[order])) + 1
        for members in np.split(shared[order], borders):
            pairs.update(_pairs(members.tolist()))
    return pairs


def _digests(shingles: Shingles, rows: NDArray[np.int64]) -> Any:
    from rensa import RMinHash

    part = shingles.take(rows)
    return RMinHash.digest_matrix_from_flat_token_hashes(
        part.hashes, part.offsets, _PERMUTATIONS, _SEED
    )


def _pairs(members: list[int]) -> Iterable[tuple[int, int]]:
    if len(members) <= _ALL_PAIRS:
        return combinations(members, 2)
    return chain(((members[0], member) for member in members[1:]), pairwise(members))


def _verified(
    shingles: Shingles, content: NDArray[np.uint64], pairs: set[tuple[int, int]]
) -> Iterator[tuple[int, int, float]]:
    sets: dict[int, frozenset[int]] = {}
    for row in set(chain.from_iterable(pairs)):
        sets[row] = shingles.of(row)
    for left, right in pairs:
        if content[left] == content[right]:
            continue
        a, b = sets[left], sets[right]
        both = len(a & b)
        similarity = both / (len(a) + len(b) - both)
        if similarity >= ALIKE:
            yield left, right, similarity
