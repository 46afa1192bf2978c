"""Packages that ``gradian plugins new`` writes keep every promise as they are."""

import ast
import importlib
import sys
import tomllib

import pytest

from gradian_core.cli.app import main
from gradian_core.errors import UsageError
from gradian_core.scaffold.write import new_package
from gradian_core.testing import isolated_registry, promises

KINDS = ("check", "clusterer", "engine", "metric", "sink")


@pytest.fixture
def scaffold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def make(kind, name):
        assert main(["plugins", "new", kind, name]) == 0
        (folder,) = tmp_path.iterdir()
        monkeypatch.syspath_prepend(str(folder))
        importlib.invalidate_caches()
        return folder

    yield make
    for name in [name for name in sys.modules if name.partition(".")[0] == "gradian_my_thing"]:
        del sys.modules[name]


@pytest.mark.parametrize("kind", KINDS)
def test_it_keeps_its_promises(scaffold, kind):
    scaffold(kind, "my-thing")
    registry = isolated_registry(my_thing="gradian_my_thing")
    found = promises("my_thing", registry=registry)
    assert len(found) > 5
    for promise in found:
        promise.keep()


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_whole(scaffold, kind):
    folder = scaffold(kind, "my_thing")
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["name"] == "gradian-my-thing"
    assert project["entry-points"]["gradian.v1"] == {"my_thing": "gradian_my_thing"}
    sources = list(folder.rglob("*.py"))
    assert len(sources) >= 3
    for source in sources:
        text = source.read_text()
        assert "$" not in text
        assert ast.get_docstring(ast.parse(text))
    assert not list(folder.rglob("*.tmpl"))


def test_a_check_with_a_family(scaffold):
    scaffold("check", "style.my_thing")
    registry = isolated_registry(my_thing="gradian_my_thing")
    assert list(registry.checks) == ["style.my_thing"]
    (finding,) = registry.create("check", "style.my_thing")(
        **registry.create("check", "style.my_thing").trips()
    )
    assert finding.id == "style.my_thing"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("engine", "a.b"),
        *(("check", bad) for bad in ("", "A", "1x", "a b", "../x", "a.b.c", "x_", "x" * 61)),
        *(("check", bad) for bad in ("class", "none", "rows", "len")),
        ("engine", "field"),
    ],
)
def test_names_that_are_none(kind, name, tmp_path):
    with pytest.raises(UsageError):
        new_package(kind, name, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "mine").write_text("x")
    for out in (tmp_path, tmp_path / "mine"):
        with pytest.raises(UsageError, match="already there"):
            new_package("sink", "x", out)
    (tmp_path / "empty").mkdir()
    assert "pip install -e" in new_package("sink", "x", tmp_path / "empty")
