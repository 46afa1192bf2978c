"""The built-in plugins keep what every plugin promises."""

import pytest

from gradian_core.plugins.registry import load_registry
from gradian_core.testing import promises

BUILT_IN = [
    promise
    for record in load_registry().plugins
    # a reason beside "ok" says which packages are missing here
    if record.distribution == "gradian-ml" and record.state == "ok" and not record.reason
    for promise in promises(record.name)
]


@pytest.mark.parametrize("promise", BUILT_IN, ids=str)
def test_built_in(promise):
    promise.keep()
