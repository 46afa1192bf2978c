"""Installed versions against the supported window."""

import re
from importlib import metadata

import pytest

from gradian_core.versions import (
    EXTRAS,
    SUPPORTED,
    Window,
    importable,
    installed_version,
    library_versions,
)

REQUIREMENTS = metadata.requires("gradian-ml")


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("2.3.9", "older"),
        ("2.4", None),
        ("2.4.0", None),
        ("2.13.0+cpu", None),
        ("2.13.9", None),
        ("2.14.0rc1", "newer"),
        ("3", "newer"),
        ("10.0", "newer"),
    ],
)
def test_window(version, problem):
    found = Window("2.4", "2.13").problem(version)
    assert found is None if problem is None else found.startswith(f"{problem} than")


@pytest.mark.parametrize("name", SUPPORTED)
def test_the_oldest_supported_version_is_the_one_in_the_metadata(name):
    (minimum,) = {
        match.group(1)
        for requirement in REQUIREMENTS
        if (match := re.match(rf"{re.escape(name)}>=([\d.]+)", requirement))
    }
    assert SUPPORTED[name].minimum == minimum


def test_extras_are_those_of_the_metadata():
    assert set(EXTRAS) | {"all"} == set(metadata.metadata("gradian-ml").get_all("Provides-Extra"))


def test_library_versions():
    found = library_versions(["pluggy", "surely-missing"])
    assert list(found) == ["python", "pluggy"]
    assert found["pluggy"] == metadata.version("pluggy")
    assert installed_version("surely-missing") is None


def test_importable(monkeypatch):
    assert importable("json")
    assert not importable("surely_missing")
    monkeypatch.setitem(__import__("sys").modules, "json", None)
    assert not importable("json")
