"""What a sink promises."""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gradian_core.plugins.record import Provided
from gradian_core.plugins.registry import Registry
from gradian_core.protocols import Sink
from gradian_core.report.model import Report
from gradian_core.specs import SinkSpec
from gradian_core.testing.promise import Promise, Test, each, require
from gradian_core.testing.reports import hostile_report, plain_report

__all__ = ["promises_of"]

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SCRIPT = re.compile(r"(?<!\\)<(script>alert|img src=x)", re.IGNORECASE)
_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LIVE_IN = {".html", ".htm", ".md", ".svg", ".xml"}
"""Endings of files in which such a tag would come alive."""
_ESCAPED_CONTROLS = {".json", ".jsonl", ".sarif"}
"""Endings of files in which JSON has its own way to write them."""


def promises_of(registry: Registry, provided: Provided[SinkSpec]) -> Iterator[Promise]:
    """Yield the promises of one sink."""
    name = provided.spec.name
    tests: list[Test[Sink]] = [
        ("inside", "it writes within its folder only, and returns what it wrote", _inside),
        ("bytes", "the same report gives the same bytes", _repeats),
        ("hostile", "hostile text stays text", _hostile),
    ]
    yield from each(f"sink:{name}", lambda: registry.create("sink", name), tests)


def _write(sink: Sink, report: Report) -> dict[str, bytes]:
    """Return what it wrote by name; ``stdout`` is what it printed."""
    with tempfile.TemporaryDirectory() as outer:
        folder, elsewhere = Path(outer) / "reports", Path(outer) / "elsewhere"
        folder.mkdir()
        elsewhere.mkdir()
        printed = io.StringIO()
        before = Path.cwd()
        os.chdir(elsewhere)
        try:
            with contextlib.redirect_stdout(printed):
                returned = {Path(path) for path in sink.write(report, folder)}
        finally:
            os.chdir(before)
        strays = [path.name for path in elsewhere.rglob("*")]
        strays += [path.name for path in Path(outer).iterdir() if path not in {folder, elsewhere}]
        require(not strays, f"It writes outside its folder: {', '.join(sorted(strays))}.")
        there = {path for path in folder.rglob("*") if path.is_file()}
        require(
            returned == there,
            f"It returns {sorted(p.name for p in returned)} and wrote "
            f"{sorted(p.name for p in there)}.",
        )
        made = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(there)}
        for name, content in made.items():
            require(outer.encode() not in content, f"{name} holds the path of its own folder.")
    return {**made, "stdout": printed.getvalue().encode("utf-8", "backslashreplace")}


def _inside(sink: Sink) -> None:
    _write(sink, plain_report())


def _repeats(sink: Sink) -> None:
    require(_write(sink, plain_report()) == _write(sink, plain_report()), "The bytes differ.")


def _hostile(sink: Sink) -> None:
    for name, content in _write(sink, hostile_report()).items():
        suffix = Path(name).suffix.lower()
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            require(suffix in {".gz", ".zip", ".pdf", ".png"}, f"{name} is no UTF-8: {error}.")
            continue
        if suffix not in _ESCAPED_CONTROLS:
            found = _CONTROLS.search(text)
            require(not found, f"{name} holds a raw control character; see gradian_core.text.")
        if suffix in _LIVE_IN:
            # In markdown, what stands in code is shown as it is.
            shown = _CODE.sub("", text) if suffix == ".md" else text
            require(not _SCRIPT.search(shown), f"{name} holds a live HTML tag from a row.")
