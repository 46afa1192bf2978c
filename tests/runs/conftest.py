"""Writing small runs, and reading them as the product does."""

from __future__ import annotations

import json

import pytest

from gradian_core.plugins.registry import load_registry
from gradian_core.runs.resolve import read_run


@pytest.fixture(scope="session")
def registry():
    return load_registry()


@pytest.fixture(scope="session")
def read(registry):
    """Read a run through all readers."""
    return lambda path: read_run(path, registry)


@pytest.fixture
def put(tmp_path):
    """Write files into the test's folder, by path; what is neither text nor bytes becomes JSON."""

    def files(contents):
        for name, content in contents.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content if isinstance(content, str) else json.dumps(content))
        return tmp_path

    return files
