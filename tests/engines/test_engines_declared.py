"""Declaring an engine imports nothing heavy, and the import strings lead somewhere."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from gradian_core.protocols import BlockEngine, TaskEngine
from gradian_core.specs import EngineSpec

NAMES = ["baselines", "datainf", "graddot", "path", "tracin"]


def load(target):
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("name", NAMES)
def test_spec_leads_to_engine_and_settings(name):
    specs = list(importlib.import_module(f"gradian_engines.{name}").gradian_engines())
    assert [spec.name for spec in specs] == [name] or name == "baselines"
    for spec in specs:
        assert isinstance(spec, EngineSpec)
        settings = () if spec.config is None else (load(spec.config)(),)
        assert isinstance(load(spec.factory)(*settings), BlockEngine | TaskEngine)


def test_declaring_imports_nothing_heavy():
    code = (
        "import sys\n"
        + "".join(
            f"import gradian_engines.{name} as m; list(m.gradian_engines())\n" for name in NAMES
        )
        + "heavy = {'numpy', 'torch', 'pydantic', 'h5py', 'transformers', 'sklearn'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
