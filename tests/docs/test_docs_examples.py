"""Code in the pages, executed."""

import ast
import contextlib
import functools
import importlib
import io
import runpy
import shutil
import sys
import tomllib
from importlib import metadata
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from gradian_core.config.models import Config
from gradian_core.files import write_atomic
from gradian_core.plugins.options import engine_options
from gradian_core.plugins.record import State
from gradian_core.plugins.registry import load_registry


def execute(page, about):
    """Run the blocks of a page with this mark, and return what they print."""
    blocks = [block for block in page.blocks if (block.mark, block.about) == ("run", about)]
    assert blocks
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in blocks:
            exec(compile(block.text, page.path.name, "exec"), {})
    return printed.getvalue()


def test_no_other_marks(page):
    known = {("run", ""), ("run", "demo folder"), ("run", "report folder"), ("run", "demo report")}
    marks = {(block.mark, block.about) for block in page.blocks if block.mark == "run"}
    assert marks <= known


def test_data(docs):
    assert execute(docs("data"), "").endswith(" sums\n")


def test_quickstart(docs, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("peft")
    from gradian_core.demo import MODEL_FOLDER
    from gradian_core.demo.finetune import finetune

    rows = [f'{{"prompt": "Capital of {c}?", "completion": "Rome"}}\n' for c in ("Peru", "Chad")]
    monkeypatch.chdir(tmp_path)
    shutil.copytree(MODEL_FOLDER, "base")
    write_atomic(tmp_path / "train.jsonl", "".join(rows * 3))
    write_atomic(tmp_path / "eval.jsonl", rows[0].replace("Rome", "Lima"))
    finetune("base", [yaml.safe_load(row) for row in rows * 3], tmp_path / "run", epochs=1)
    headline, *worst = execute(docs("quickstart"), "demo folder").splitlines()
    assert "capitals" in headline
    assert len(worst) == 5


def test_report(docs, tmp_path, monkeypatch, root):
    pytest.importorskip("sklearn")
    samples = SimpleNamespace(
        **runpy.run_path(str(root / "tests" / "report" / "report_samples.py"))
    )
    report = samples.poisoned()
    write_atomic(tmp_path / "reports" / "report.json", report.to_json())
    write_atomic(tmp_path / "reports" / "scores.csv", report.scores.to_csv())
    monkeypatch.chdir(tmp_path)
    assert execute(docs("report"), "report folder").startswith("0 0 4 ")


@pytest.mark.slow
def test_demo_numbers(docs, tmp_path, monkeypatch):
    pytest.importorskip("peft")
    from gradian_core.cli.app import main

    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--quiet"]) == 0
    planted, found = map(int, execute(docs("how-it-works"), "demo report").split())
    assert planted == 72
    assert found >= 0.9 * planted


# --- the plugin package ------------------------------------------------------------------------


@pytest.fixture
def package(docs, tmp_path, monkeypatch):
    """Install the package of docs/plugins.md, without pip."""
    blocks = {b.about: b.text for b in docs("plugins").blocks if b.mark == "file"}
    project = tomllib.loads(blocks["pyproject.toml"])["project"]
    for name, text in blocks.items():
        write_atomic(tmp_path / name, text)
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    group = project["entry-points"]["gradian.v1"]
    lines = [f"{name} = {module}" for name, module in group.items()]
    write_atomic(info / "entry_points.txt", "\n".join(["[gradian.v1]", *lines]))
    write_atomic(info / "METADATA", f"Name: {project['name']}\nVersion: {project['version']}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("GRADIAN_BLOCK", raising=False)
    monkeypatch.setattr(
        metadata, "distributions", functools.partial(metadata.distributions, path=[str(tmp_path)])
    )
    importlib.invalidate_caches()
    yield blocks
    for name in [name for name in sys.modules if name.partition(".")[0] == "gradian_house"]:
        del sys.modules[name]


def test_the_package_is_found(package):
    registry = load_registry()
    assert [(p.name, p.state, p.reason) for p in registry.plugins] == [("house", State.OK, "")]
    assert "numpy" not in package["gradian_house/__init__.py"]


def test_its_declaring_module_imports_the_contract_only(package):
    tree = ast.parse(package["gradian_house/__init__.py"])
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"gradian_core.hookspecs", "gradian_core.specs"}


def test_its_engine_scores(package, docs):
    registry = load_registry()
    setting = next(b.text for b in docs("plugins").blocks if "power: 0.5" in b.text)
    config = Config.model_validate(yaml.safe_load(setting))
    options = engine_options(config, "normdot", registry.config_model("engine", "normdot"))
    engine = registry.create("engine", config.engine.name, options)
    G = np.random.default_rng(0).normal(size=(5, 3))
    G[2] = 0.0
    V = np.random.default_rng(1).normal(size=(2, 3))
    block = SimpleNamespace(
        n=5,
        squared_norms=(G**2).sum(axis=1),
        chunks=lambda: iter([(slice(0, 2), G[:2]), (slice(2, 5), G[2:])]),
    )
    expected = np.zeros((2, 5))
    for q in range(2):
        for j in (0, 1, 3, 4):
            expected[q, j] = sum(V[q] * G[j]) / np.linalg.norm(G[j]) ** 0.5
    np.testing.assert_allclose(engine.score_block(block, V, None), expected)
    assert engine.caveats(None)


def test_its_metric_judges(package):
    metric = load_registry().create("metric", "last_number")
    assert metric.score("2 + 2 is 4.0.", "4") == 1.0
    assert metric.score("4, or rather 5", "4") == 0.0
    assert metric.score("four", "4") == 0.0
    with pytest.raises(ValueError, match="four"):
        metric.score("4", "four")


def test_it_keeps_the_promises_as_its_own_tests_would_ask(package, docs):
    code = next(b.text for b in docs("plugins").blocks if "isolated_registry(house=" in b.text)
    scope = {}
    exec(compile(code, "plugins.md", "exec"), scope)
    kept = scope["promises"]("house", registry=scope["REGISTRY"])
    assert len(kept) > 10
    for promise in kept:
        scope["test_promise"](promise)


def test_it_can_be_left_out(package, docs, monkeypatch, capsys):
    from gradian_core.cli.app import main

    command = next(b.text for b in docs("plugins").blocks if "GRADIAN_BLOCK=" in b.text)
    setting, *words = command.split()
    assert words[0] == "gradian"
    monkeypatch.setenv(*setting.split("="))
    assert main(words[1:]) == 0
    assert "blocked" in capsys.readouterr().out
    text = next(b.text for b in docs("plugins").blocks if "block: [gradian-house]" in b.text)
    config = Config.model_validate(yaml.safe_load(text))
    monkeypatch.delenv("GRADIAN_BLOCK")
    (plugin,) = load_registry(config.plugins.block).plugins
    assert plugin.state is State.BLOCKED
