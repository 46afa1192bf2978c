"""What the text metrics take for the same text.

Folded away, because a right answer may be spelled with or without it:

* compatibility forms and case (Unicode NFKC, full case folding: ``ﬁ``, ``Ａ``, ``ß``);
* accents on Latin and Greek letters (``São Paulo``, ``naïve``), and ``ё`` for ``е``. In other
  scripts a mark makes another letter (``й``, ``が``, Arabic and Indic vowels) and stays;
* punctuation, typographic or not, Markdown emphasis and white space: they only separate words;
* digits of other scripts, and separators in groups of three: ``1,000``, ``1'000``, ``١٠٠٠``;
* invisible format characters (soft hyphen, zero-width joiner, byte order mark).

Kept, because the answer changes with it:

* letters of their own: ``ø``, ``ł``, ``ı``;
* the sign and the decimal point of a number: ``-5``, ``3.14`` (a decimal comma separates);
* superscripts and fractions after a digit stay apart from it: ``10²`` is not ``102``;
* symbols (``C++``, ``5 €``, ``x = 3``), and ``{ } [ ]``, which carry structure.

The text becomes a sequence of tokens. A number is one token, so ``4`` is not in ``42``; a unit
written next to it is the following token (``12km`` is ``12 km``), while digits after letters
belong to the word (``H2O``). Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese and Tibetan
put no space around each word (or glue particles to it), so there every character is a token.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = ["fold", "occurs", "tokens"]

_ACCENTS = re.compile(r"(?<=[^\u0300-\u036f\u0400-\u052f])[\u0300-\u036f]+|(?<=е)\u0308")
_GROUP_SPACES = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_LOOKALIKES = str.maketrans({"\u2212": "-", "\u2044": "/", "\u2019": "'"})
_STRUCTURE = frozenset("{}[]")
_UNSPACED_RANGES = (
    "\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f"
    "\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{_UNSPACED_RANGES}]")
_NUMBER = re.compile(
    rf"""
    (?:(?<![^\W_{_UNSPACED_RANGES}])(?<![.)\]}}-])-(?=\.?\d))?  # a sign; between words, a hyphen
    (?<![^\W_{_UNSPACED_RANGES}])           # digits within a word belong to it
    (?: (?:\d{{1,3}}(?:[,'_]\d{{3}})+(?!\d)  # digits in groups of three
        | \d+) (?:\.\d+)*                  # decimals, or a version
      | (?<!\.)\.\d+ )
    """,
    re.VERBOSE,
)


def tokens(text: str) -> tuple[str, ...]:
    """Return the tokens of a text after folding; see the module docstring."""
    return tuple(_split(_canonical(text)))


def fold(text: str) -> str:
    """Return the tokens of a text joined by single spaces; empty if nothing is left."""
    return " ".join(tokens(text))


def occurs(needle: str, text: str) -> bool:
    """Whether the folded ``needle`` occurs in the folded ``text`` at token boundaries."""
    return f" {needle} " in f" {text} "


def _canonical(text: str) -> str:
    text = _GROUP_SPACES.sub("_", text)
    text = "".join(_visible(text))
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    text = unicodedata.normalize("NFKC", _ACCENTS.sub("", text)).translate(_LOOKALIKES)
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)


def _visible(text: str) -> Iterator[str]:
    """Drop invisible characters; keep raised digits and fractions apart from the number before."""
    before = ""
    for char in text:
        category = unicodedata.category(char)
        if category == "Cf" or "\ufe00" <= char <= "\ufe0f":
            continue
        if category == "No" and before.isdecimal():
            yield " "
        yield char
        before = char


def _split(text: str) -> Iterator[str]:
    end = 0
    for number in _NUMBER.finditer(text):
        yield from _words(text[end : number.start()])
        yield re.sub("[,'_]", "", number.group())
        end = number.end()
    yield from _words(text[end:])


def _words(text: str) -> Iterator[str]:
    """Tokens of a text without free-standing numbers."""
    word = ""
    for char in text:
        kind = unicodedata.category(char)
        if kind[0] == "M":
            word += char
            continue
        alone = bool(_UNSPACED.match(char)) or char in _STRUCTURE or kind in {"Sm", "Sc", "So"}
        joins = kind[0] in "LN" and not alone and not (word and _stands_alone(word[0]))
        if not joins and word:
            yield word
            word = ""
        if alone or kind[0] in "LN":
            word += char
    if word:
        yield word


def _stands_alone(char: str) -> bool:
    return bool(_UNSPACED.match(char)) or unicodedata.category(char)[0] in "SP"
