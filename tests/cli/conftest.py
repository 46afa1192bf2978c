"""The command line with the heavy flows replaced."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from gradian_core.cli import needs
from gradian_core.cli.app import main


@pytest.fixture
def gradian(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder; gives ``code``, ``out``, ``err``."""
    monkeypatch.chdir(tmp_path)
    for name in ("GRADIAN_BLOCK", "GRADIAN_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def run(*argv):
        code = main([str(word) for word in argv])
        captured = capsys.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return run


@pytest.fixture
def flow(monkeypatch):
    """Put a function in the place of a flow; the packages that it needs count as installed."""

    def replace(module: str, name: str, function):
        stand_in = ModuleType(f"gradian_core.flows.{module}")
        setattr(stand_in, name, function)
        monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
        monkeypatch.setattr(needs, "importable", lambda name: True)

    return replace
