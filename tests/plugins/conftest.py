"""Fake distributions: real dist-info folders and modules, seen instead of the installed ones."""

from __future__ import annotations

import functools
import importlib
import itertools
import sys
import textwrap
from importlib import metadata

import pytest

_NUMBERS = itertools.count()

HEAD = """
from gradian_core.hookspecs import hookimpl
from gradian_core.specs import EngineSpec, MetricSpec, SinkSpec, CheckSpec
"""

ENGINE = """
class Engine:
    def __init__(self, options=None):
        self.options = options
    def score_block(self, block, queries, context):
        return None
    def caveats(self, context):
        return ()
"""


class Site:
    """A folder of fake distributions."""

    def __init__(self, folder):
        self.folder = folder
        self.modules: list[str] = []

    def module(self, source: str, head: str = HEAD) -> str:
        """Write a module under a fresh name and return the name; %NAME% stands for it."""
        name = f"fake_plugin_{next(_NUMBERS)}"
        text = head + textwrap.dedent(source).replace("%NAME%", name)
        (self.folder / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        self.modules.append(name)
        return name

    def distribution(self, name: str, entry_points: str, version: str = "1.0", metadata=None):
        """Write a dist-info folder."""
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        if metadata is None:
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(metadata)
        raw = entry_points if isinstance(entry_points, bytes) else entry_points.encode()
        (info / "entry_points.txt").write_bytes(raw)

    def plugin(self, source: str, *, dist: str, entry: str = "thing", version: str = "1.0") -> str:
        """Write a module and a distribution with one entry point for it."""
        module = self.module(source)
        self.distribution(dist, f"[gradian.v1]\n{entry} = {module}\n", version)
        return module

    def engine(self, name: str, *, dist: str, entry: str = "thing", spec: str = "") -> str:
        """Write a healthy plugin with one engine."""
        return self.plugin(
            f"""
            {ENGINE.replace(chr(10), chr(10) + " " * 12)}
            @hookimpl
            def gradian_engines():
                yield EngineSpec(name={name!r}, summary="s", factory="%NAME%:Engine", {spec})
            """,
            dist=dist,
            entry=entry,
        )


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    site = Site(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delenv("GRADIAN_BLOCK", raising=False)
    monkeypatch.setattr(
        metadata, "distributions", functools.partial(metadata.distributions, path=[str(folder)])
    )
    yield site
    for name in site.modules:
        sys.modules.pop(name, None)
