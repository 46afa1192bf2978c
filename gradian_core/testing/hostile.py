"""Texts that a row, a name or a plugin may hold, each of which breaks something careless."""

from __future__ import annotations

__all__ = ["HOSTILE"]

HOSTILE = (
    "[bold red]markup[/red] [/] [link=file:///etc/passwd]x[/link]",
    "| a | b |\n|---|---|\n`` ` ``` code <script>alert(1)</script> **bold** @someone #123",
    "\x1b[2J\x1b]0;owned\x07\x9b31m\x00\x08bell\x07",
    "\u202egnp.exe\u202c \u2066isolate\u2069 \u200f",
    "\ud800 lone \udfff surrogates",
    "::error file=x::forged\r\n   ::error::forged too\u2028::set-output name=a::b",
    "=HYPERLINK(0) +1 -1 @SUM(A1)",
    "# heading\n\n1. list\n- item\n\n    code\n\n---\n",
    "",
    " \t ",
    "</script><img src=x onerror=alert(1)> {{7*7}} ${7*7} {% raw %}",
)
"""Markup of terminals, markdown, HTML, templates, spreadsheets and CI logs; no text at all."""
