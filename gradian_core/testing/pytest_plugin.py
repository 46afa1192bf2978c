"""Fixtures for the tests of plugins, opt-in.

In a ``conftest.py``: ``pytest_plugins = ["gradian_core.testing.pytest_plugin"]``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from gradian_core.testing.registry import isolated_registry

if TYPE_CHECKING:
    from gradian_core.index.reader import GradientIndex
    from gradian_core.plugins.registry import Registry
    from gradian_core.testing.fixtures import TinyRun

__all__ = ["gradian_facts", "gradian_index", "gradian_registry", "gradian_run"]


@pytest.fixture
def gradian_registry() -> Callable[..., Registry]:
    """Make a registry of the modules given, blind to what is installed."""
    return isolated_registry


@pytest.fixture
def gradian_facts() -> dict[str, Any]:
    """Make the facts of a small, healthy fine-tune, by name."""
    from gradian_core.testing.facts import demo_facts

    return demo_facts()


@pytest.fixture(scope="session")
def gradian_run(tmp_path_factory: pytest.TempPathFactory) -> TinyRun:
    """Train a LoRA adapter of a tiny model; needs the extra ``attribution``."""
    pytest.importorskip("peft")
    from gradian_core.testing.fixtures import tiny_run

    return tiny_run(tmp_path_factory.mktemp("gradian_run"))


@pytest.fixture(scope="session")
def gradian_index(gradian_run: TinyRun, tmp_path_factory: pytest.TempPathFactory) -> GradientIndex:
    """Build its gradient index."""
    from gradian_core.testing.fixtures import tiny_index

    return tiny_index(gradian_run, tmp_path_factory.mktemp("gradian_index"))
