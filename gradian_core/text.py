"""Text from files, made safe to print.

Training rows are written by strangers, and looking for poisoned ones is what the product is for.
A row may therefore hold terminal escapes, text direction overrides, markdown, or half of a
surrogate pair. Everything that reaches a terminal, a log or a markdown file passes through here
first; HTML is escaped by its template engine on top of that.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

__all__ = ["did_you_mean", "excerpt", "inert", "md_cell", "md_code", "safe_text"]

# ECMA-48 sequences with either introducer: ESC plus a letter, or the single C1 code. A string
# sequence (OSC, DCS, SOS, PM, APC) is only swallowed when it is terminated, so that a stray
# introducer cannot hide the rest of a row.
_ESCAPE_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
_LINE_BREAKS = re.compile(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f"
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb]"
)
_SURROGATES = re.compile(r"[\ud800-\udfff]")

_WORD_JOINER = "\u2060"
# Azure acts on ##vso[…] and old GitHub runners on ##[…], wherever they stand in a line.
_COMMANDS = re.compile(r"#(?=#\w*\[)")
_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>&|~$!]")
# GitHub looks for mentions, issue numbers and links in the rendered text, where a backslash no
# longer exists; an invisible character that is no part of a name breaks them up.
_AUTOLINKS = re.compile(r"[@#](?=\w)|:(?=//)|(?<=www)(?=\.)|(?<=GH)(?=-\d)", re.IGNORECASE)


def safe_text(text: str, *, multiline: bool = False) -> str:
    r"""Return the text without anything that a terminal or a log would act on.

    Removed: escape sequences, C0 and C1 controls, bidirectional controls, byte order marks.
    Lone surrogates, which cannot be encoded, become U+FFFD. Idempotent.

    Parameters
    ----------
    text
        Text from anywhere.
    multiline
        Keep line breaks (all kinds become ``\n``) and tabs. Otherwise each becomes a space.
    """
    text = _ESCAPE_SEQUENCES.sub("", text)
    text = _LINE_BREAKS.sub("\n" if multiline else " ", text)
    if not multiline:
        text = text.replace("\t", " ")
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", text))


def inert(line: str) -> str:
    """Return one line of safe text that no CI runner takes for a command within a line."""
    return _COMMANDS.sub(f"#{_WORD_JOINER}", safe_text(line))


def excerpt(text: str, width: int) -> str:
    """Return at most ``width`` characters of the safe text on one line, ``…`` where it was cut.

    Runs of white space become one space.
    """
    if width < 1:
        raise ValueError(f"width must be at least 1, not {width}")
    # Escape sequences shrink the text, so cutting before cleaning needs slack; long rows would
    # otherwise be cleaned in full for the sake of a few words.
    head = text[: 64 * width + 4096]
    line = " ".join(safe_text(head).split())
    if len(line) <= width and len(head) == len(text):
        return line
    return line[: width - 1].rstrip() + "…"


def md_cell(text: str) -> str:
    """Return the text as a markdown table cell that renders as exactly that text.

    No markup, HTML, mention (``@name``), issue number (``#123``) or link comes alive.
    """
    line = _AUTOLINKS.sub(lambda found: found.group() + _WORD_JOINER, safe_text(text))
    return _MARKDOWN.sub(r"\\\g<0>", line)


def md_code(text: str) -> str:
    """Return the text as inline code for a markdown table cell."""
    line = safe_text(text)
    if not line.strip():
        return ""
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    # Markdown strips one space from both ends of a code span when both are there.
    pad = " " if line[0] in "` " or line[-1] in "` " else ""
    # A table row is split at its pipes before code spans are looked for.
    escaped = line.replace("|", "\\|")
    return f"{fence}{pad}{escaped}{pad}{fence}"


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Return ``Did you mean X?`` for the known word that is closest, or None if none is close."""
    close = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f"Did you mean {close[0]}?" if close else None
