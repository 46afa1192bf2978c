from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def fakes():
    """The fake model and data (``index_fakes.py``)."""
    name = "index_fakes"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture
def tokens(fakes):
    return fakes.make_tokens(25, unsupervised=(4, 19))


@pytest.fixture
def query_tokens(fakes):
    return fakes.make_tokens(6, seed=77)


@pytest.fixture
def setting(fakes, tokens, query_tokens, tmp_path):
    """Training index, and three contrastive queries."""
    from gradian_core.attribution.point import Queries

    combination = np.zeros((3, 6))
    for query in range(3):
        combination[query, 2 * query] = 1.0
        combination[query, 2 * query + 1] = -1.0
    index = fakes.make_index(tmp_path / "train", tokens)
    queries = fakes.make_index(tmp_path / "query", query_tokens)
    return index, Queries(index=queries, combination=combination)
