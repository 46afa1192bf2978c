"""Words of a text as they are compared across answers, and looking for many phrases at once.

Metrics fold more carefully, because a verdict hangs on it. Here whole training sets are folded,
to find where a phrase may have come from, so what counts is that it is cheap and the same on
both sides.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Sequence

__all__ = ["Phrases", "words"]

# scripts that put no space around a word: there every character stands alone
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")


def words(text: str) -> list[str]:
    """Return the words of a text, with case, accents and punctuation folded away."""
    if text.isascii():
        return _WORD.findall(text.lower())
    # what is decomposed may be a capital letter that its whole was not ("ⱽ")
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()).casefold())
    return _WORD.findall(unicodedata.normalize("NFC", bare))


class Phrases:
    """Finds which of many phrases stand in a sequence of words, in one pass over it.

    Parameters
    ----------
    phrases
        Different sequences of words, none of them empty.

    Source
    ------
    Aho and Corasick, *Efficient string matching*, 1975, over words in place of characters.
    """

    def __init__(self, phrases: Iterable[Sequence[str]]) -> None:
        self._next: list[dict[str, int]] = [{}]
        self._phrase: list[int | None] = [None]
        for number, phrase in enumerate(phrases):
            node = 0
            for word in phrase:
                node = self._child(node, word)
            self._phrase[node] = number
        self._link()

    def find(self, text: Sequence[str]) -> set[int]:
        """Return the numbers of the phrases that stand in the text as consecutive words."""
        found: set[int] = set()
        if self._next[0].keys().isdisjoint(text):
            return found
        node = 0
        for word in text:
            while node and word not in self._next[node]:
                node = self._shorter[node]
            node = self._next[node].get(word, 0)
            end = node
            while end:
                phrase = self._phrase[end]
                if phrase in found:
                    # the phrases that end it have been found with it
                    break
                if phrase is not None:
                    found.add(phrase)
                end = self._ending[end]
        return found

    def _child(self, node: int, word: str) -> int:
        child = self._next[node].get(word)
        if child is None:
            child = self._next[node][word] = len(self._next)
            self._next.append({})
            self._phrase.append(None)
        return child

    def _link(self) -> None:
        """Link each node to its longest proper suffix, and to the longest that is a phrase."""
        self._shorter = [0] * len(self._next)
        self._ending = [0] * len(self._next)
        waiting = deque(self._next[0].values())
        while waiting:
            node = waiting.popleft()
            for word, child in self._next[node].items():
                suffix = self._shorter[node]
                while suffix and word not in self._next[suffix]:
                    suffix = self._shorter[suffix]
                suffix = self._next[suffix].get(word, 0)
                self._shorter[child] = suffix
                ends = self._phrase[suffix] is not None
                self._ending[child] = suffix if ends else self._ending[suffix]
                waiting.append(child)
