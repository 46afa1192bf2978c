"""What every plugin of Gradian promises."""

import pytest

from gradian_core.testing import isolated_registry, promises

REGISTRY = isolated_registry(**{"bm25-contrast": "gradian_engine_example"})


@pytest.mark.parametrize("promise", promises("bm25-contrast", registry=REGISTRY), ids=str)
def test_promise(promise):
    promise.keep()
