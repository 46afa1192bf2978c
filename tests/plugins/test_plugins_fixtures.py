"""The fixtures that plugin authors get."""

import pytest

from gradian_core.check import FACTS
from gradian_core.testing.facts import demo_facts

pytest.importorskip("peft")


def test_facts_are_those_that_checks_may_ask_for():
    facts = demo_facts(n=5)
    assert set(facts) == FACTS
    assert len(facts["examples"]) == len(facts["tokens"].tokens) == 5


def test_index_of_the_tiny_run(tmp_path):
    from gradian_core.testing.fixtures import tiny_index, tiny_run

    run = tiny_run(tmp_path, n=6)
    index = tiny_index(run, tmp_path / "cache")
    assert index.n == 6
    assert (run.run / "adapter" / "adapter_model.safetensors").is_file()


def test_pytest_gives_them(tmp_path):
    import subprocess
    import sys

    (tmp_path / "conftest.py").write_text('pytest_plugins = ["gradian_core.testing.pytest_plugin"]')
    (tmp_path / "test_it.py").write_text(
        "def test_it(gradian_registry, gradian_facts, gradian_index, gradian_run):\n"
        "    assert not gradian_registry().plugins\n"
        "    assert len(gradian_facts['examples']) == 50\n"
        "    assert gradian_index.n == 24\n"
        "    assert gradian_run.dataset.is_file()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout
