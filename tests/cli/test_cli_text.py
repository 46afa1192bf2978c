"""Text from strangers: nothing that a terminal, a log or markdown acts on comes through."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_core.text import did_you_mean, excerpt, md_cell, md_code, safe_text

hostile = st.text(
    st.characters() | st.sampled_from("\x1b[]m0;\x07\x9b\x9c\x9d\\\u202e\ud800\r\n\t|`<@#"),
    max_size=60,
)


@given(hostile, st.booleans())
def test_nothing_dangerous_is_left(text, multiline):
    safe = safe_text(text, multiline=multiline)
    kept = {"\n", "\t"} if multiline else set()
    assert not [c for c in safe if unicodedata.category(c) in {"Cc", "Cs"} and c not in kept]
    assert not [c for c in safe if unicodedata.bidirectional(c) in BIDI]
    safe.encode()


BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@given(hostile, st.booleans())
def test_idempotent(text, multiline):
    safe = safe_text(text, multiline=multiline)
    assert safe_text(safe, multiline=multiline) == safe


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_ordinary_text_is_left_alone(text):
    assert safe_text(text) == text


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mx", "x"),
        ("\x1bcx", "x"),
        ("\x1b]never closed", "never closed"),
        ("\x1b[2Jx\x1b[", "x"),
        ("a\r\nb\u2028c", "a b c"),
        ("a\u202eb\u2066c\ufeff", "abc"),
        ("\ud800", "\ufffd"),
        ("é👩‍👩‍👧 ف", "é👩‍👩‍👧 ف"),
    ],
)
def test_examples(text, safe):
    assert safe_text(text) == safe


@given(hostile, st.integers(1, 30))
def test_excerpt_fits_on_a_line(text, width):
    shown = excerpt(text, width)
    assert len(shown) <= width
    assert "\n" not in shown
    whole = " ".join(safe_text(text).split())
    assert shown == whole or (shown.endswith("…") and whole.startswith(shown[:-1]))


def test_excerpt_of_a_long_row():
    assert excerpt("word " * 10**6, 12) == "word word w…"
    with pytest.raises(ValueError, match="at least 1"):
        excerpt("x", 0)


def cells(row):
    """Split a table row at its pipes as GitHub does, and undo the escape."""
    inner = row.strip().removeprefix("|").removesuffix("|")
    return [re.sub(r"\\\|", "|", cell.strip()) for cell in re.split(r"(?<!\\)\|", inner)]


@given(hostile)
def test_cells_stay_one_cell(text):
    assert len(cells(f"| x | {md_cell(text)} | y |")) == 3
    assert len(cells(f"| x | {md_code(text)} | y |")) == 3


@given(hostile)
def test_cells_render_as_their_text(text):
    markdown = pytest.importorskip("markdown_it").MarkdownIt("gfm-like", {"linkify": False})
    table = f"| a | b |\n|---|---|\n| {md_cell(text)} | {md_code(text)} |\n"
    rendered = [token for token in markdown.parse(table) if token.type == "inline"][2:]
    assert len(rendered) == 2
    plain, code = rendered
    children = [child.type for child in plain.children]
    assert set(children) <= {"text", "text_special"}
    shown = "".join(child.content for child in plain.children).replace("\u2060", "")
    expected = safe_text(text).replace("\u2060", "")
    assert shown.strip() == expected.strip()
    if expected.strip():
        (span,) = code.children
        assert span.type == "code_inline"
        assert span.content.strip() == safe_text(text).strip()


@pytest.mark.parametrize("text", ["@octocat", "see #12", "http://evil.example", "www.evil", "GH-1"])
def test_nothing_becomes_a_link_or_a_mention(text):
    assert not re.search(r"[@#]\w|://|www\.|GH-\d", md_cell(text).replace("\\", ""))


def test_did_you_mean():
    assert did_you_mean("datinf", ["graddot", "datainf"]) == "Did you mean datainf?"
    assert did_you_mean("zzz", ["graddot", "datainf"]) is None
    assert did_you_mean("x", []) is None
