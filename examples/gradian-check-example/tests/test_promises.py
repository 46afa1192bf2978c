"""What every plugin of Gradian promises."""

import pytest

from gradian_core.testing import isolated_registry, promises

REGISTRY = isolated_registry(house="gradian_check_example")


@pytest.mark.parametrize("promise", promises("house", registry=REGISTRY), ids=str)
def test_promise(promise):
    promise.keep()
