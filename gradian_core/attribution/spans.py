"""Which part of a training row did it: its answer in pieces, each with a loss of its own.

The tokens stay as they are and only the loss mask varies, so every piece is seen in its context,
and the gradients of the pieces add up to that of the row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Span", "pieces", "token_spans"]

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=\S)|(?<=[。！？])")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Span:
    """A piece of an answer.

    Parameters
    ----------
    text
        What it says.
    kind
        ``field``, ``line`` or ``sentence``.
    mask
        ``(t,)`` bool: its tokens within the row. The token that ends a turn goes with the last
        piece of the turn.
    """

    text: str
    kind: str
    mask: NDArray[np.bool_]


def pieces(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Cut an answer into the pieces that a person would point at.

    Top-level fields of a JSON object or array; else lines, where there are several; else
    sentences.

    Returns
    -------
    str
        What the pieces are: ``field``, ``line`` or ``sentence``.
    list
        Character spans ``(start, stop)``, in order and without gaps.
    """
    fields = _json_fields(text)
    if len(fields) > 1:
        return "field", _spans([0, *fields[1:]], len(text))
    lines = [m.start() for m in re.finditer(r"^[^\S\n]*\S", text, re.MULTILINE)]
    if len(lines) > 1:
        return "line", _spans([0, *lines[1:]], len(text))
    ends = [m.end() for m in _SENTENCE_END.finditer(text)]
    return "sentence", _spans([0, *(end for end in ends if end < len(text))], len(text))


def token_spans(tokenizer: Any, ids: NDArray[np.int32], mask: NDArray[np.bool_]) -> list[Span]:
    """Cut the targets of a row into pieces, each turn by itself.

    Parameters
    ----------
    tokenizer
        The tokenizer of the run.
    ids, mask
        ``(t,)`` tokens and targets.
    """
    found = []
    for start, stop in _runs(mask):
        text, places = _decoded(tokenizer, ids[start:stop].tolist())
        kind, cuts = pieces(text)
        # a token belongs to the piece that its first character that is no space lies in
        ends = np.array([end for _, end in cuts])
        owner = np.minimum(np.searchsorted(ends, places, side="right"), len(cuts) - 1)
        for number, (begin, end) in enumerate(cuts):
            own = np.zeros(len(mask), dtype=np.bool_)
            own[start:stop] = owner == number
            if own.any():
                found.append(Span(text=text[begin:end].strip(), kind=kind, mask=own))
    return found


def _runs(mask: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _decoded(tokenizer: Any, ids: list[int]) -> tuple[str, NDArray[np.int64]]:
    """Return the text of tokens, and where the first visible character of each lies."""
    special = set(tokenizer.all_special_ids)
    kept = [token for token in ids if token not in special]
    whole: str = tokenizer.decode(kept, clean_up_tokenization_spaces=False)
    places, done, seen = [], 0, 0
    for token in ids:
        if token in special:
            places.append(len(whole))
            continue
        seen += 1
        # a prefix of tokens may end inside a character, which decodes to a replacement
        text = tokenizer.decode(kept[:seen], clean_up_tokenization_spaces=False)
        grown = min(len(text.rstrip("\N{REPLACEMENT CHARACTER}")), len(whole))
        piece = whole[done:grown]
        places.append(min(done + len(piece) - len(piece.lstrip()), max(0, len(whole) - 1)))
        done = max(done, grown)
    return whole, np.array(places, dtype=np.int64)


def _spans(starts: list[int], length: int) -> list[tuple[int, int]]:
    return list(zip(starts, [*starts[1:], length], strict=True))


def _json_fields(text: str) -> list[int]:
    """Return where the top-level fields of a JSON value start; empty if it is none."""
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] not in ("{", "["):
        return []
    keyed = text[start] == "{"
    place = start + 1
    found: list[int] = []
    try:
        while True:
            place = _skip(text, place)
            if text[place : place + 1] in ("}", "]", ""):
                return found
            found.append(place)
            if keyed:
                _, place = _DECODER.raw_decode(text, place)
                place = _skip(text, place)
                if text[place : place + 1] != ":":
                    return []
                place = _skip(text, place + 1)
            _, place = _DECODER.raw_decode(text, place)
            place = _skip(text, place)
            if text[place : place + 1] == ",":
                place += 1
    except (ValueError, RecursionError):
        # an answer that was cut off in a field still has the fields before it
        return found


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place
