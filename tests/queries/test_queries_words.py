"""Folding, and finding many phrases at once, against looking for each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_core.attribution.words import Phrases, words

LETTERS = st.sampled_from("abc")
SENTENCES = st.lists(LETTERS, max_size=12).map(tuple)
PHRASES = st.lists(st.lists(LETTERS, min_size=1, max_size=4).map(tuple), unique=True, max_size=12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("São Paulo, NOT Rio!", ["sao", "paulo", "not", "rio"]),
        ("It's **Oslo**.", ["it", "s", "oslo"]),
        ("Straße", ["strasse"]),
        ("首都是北京。", ["首", "都", "是", "北", "京"]),
        ("서울", ["서", "울"]),
        ("ａ１", ["a1"]),
        (" … ", []),
        ("", []),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


@given(st.text(max_size=30))
def test_folding_is_idempotent(text):
    assert words(" ".join(words(text))) == words(text)


@given(PHRASES, SENTENCES)
def test_all_phrases_are_found_and_no_other(phrases, text):
    wanted = {
        number
        for number, phrase in enumerate(phrases)
        if any(text[i : i + len(phrase)] == phrase for i in range(len(text)))
    }
    assert Phrases(phrases).find(text) == wanted
