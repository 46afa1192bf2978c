"""Text folded for comparison, and its hash in 64 bits.

Two texts are the same here if they differ in nothing but the Unicode form of their characters
(NFC) and in white space. Case and punctuation count: ``2 + 2 = 4`` is not ``2 + 2 = 4!``.
"""

from __future__ import annotations

import unicodedata
from hashlib import blake2b

__all__ = ["EMPTY", "fold", "hash64"]


def fold(text: str) -> str:
    """Return the text in NFC, with each run of white space as one space and none at its ends."""
    # Most rows are ASCII, which NFC never changes.
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split())


def hash64(folded: str) -> int:
    """Return the first 64 bits of the text's BLAKE2b digest; never 0, which means *none*.

    Among a million rows, two different ones share a hash with probability 3e-8.
    """
    return int.from_bytes(blake2b(folded.encode(), digest_size=8).digest(), "little") or 1


EMPTY = hash64("")
"""Hash of a text that is empty or all white space."""
