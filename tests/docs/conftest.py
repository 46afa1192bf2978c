"""Markdown pages as data: links, tables, fenced blocks and command lines."""

from __future__ import annotations

import re
import shlex
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"^ *(?:<!-- (?P<mark>\w+)(?:: (?P<about>[^>\n]*?))? -->\n *)?"
    r"```(?P<language>\w*)\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block; ``mark`` and ``about`` come from a comment right before it."""

    language: str
    text: str
    mark: str
    about: str


class Page:
    """One markdown file."""

    def __init__(self, path):
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.blocks = [
            Block(
                found["language"],
                textwrap.dedent(found["text"]),
                found["mark"] or "",
                found["about"] or "",
            )
            for found in _BLOCK.finditer(self.text)
        ]
        self.prose = _BLOCK.sub("", self.text)

    @property
    def links(self):
        return re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", self.prose)

    @property
    def anchors(self):
        headings = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        kept = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
        return {heading.strip().replace(" ", "-") for heading in kept}

    def section(self, heading):
        """Return the text under a heading, up to the next one of the same or a higher level."""
        level = len(heading) - len(heading.lstrip("#"))
        start = self.text.index(f"{heading}\n") + len(heading)
        end = re.search(rf"^#{{1,{level}}} ", self.text[start:], re.MULTILINE)
        return self.text[start : start + end.start()] if end else self.text[start:]

    @property
    def commands(self):
        """Every command line of ours in a block, as words without the program's name."""
        lines = []
        for block in self.blocks:
            if block.language in {"bash", "sh", "shell", "console"}:
                lines += block.text.replace("\\\n", " ").splitlines()
        return [words[1:] for line in lines for words in _simple_commands(line)]

    @property
    def mentions(self):
        """The same for commands in the text, which may leave out what they need."""
        lines = re.findall(r"`(gradian [^`<…]+)`", self.prose)
        return [words[1:] for line in lines for words in _simple_commands(line)]


def _simple_commands(line):
    line = line.replace("\\|", "|").removeprefix("$ ").strip()
    if not re.match(r"(\w+=\S* )*gradian ", line):
        return
    words = []
    for word in [*shlex.split(line, comments=True), ";"]:
        if word in {"|", ">", ";", "&&", "2>"}:
            while words and "=" in words[0]:
                words.pop(0)
            if words and words[0] == "gradian":
                yield words
            words = []
        else:
            words.append(word)


def first_cells(text):
    """Return the first cell of each row of the tables in a text, heads and rules left out."""
    rows = re.findall(r"^ *\|(.+)\|$", text, re.MULTILINE)
    cells = [re.split(r"(?<!\\)\|", row)[0].strip() for row in rows]
    return [
        cell
        for i, cell in enumerate(cells)
        if not re.fullmatch(r"-+", cell)
        and not (i + 1 < len(cells) and re.fullmatch(r"-+", cells[i + 1]))
    ]


_PATHS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def pytest_generate_tests(metafunc):
    if "page" in metafunc.fixturenames:
        names = [path.relative_to(ROOT).as_posix() for path in _PATHS]
        metafunc.parametrize("page", [Page(path) for path in _PATHS], ids=names)


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def docs():
    """Give a page of docs/ by its name."""
    return lambda name: Page(ROOT / "docs" / f"{name}.md")


@pytest.fixture(scope="session")
def cells():
    return first_cells
