"""The conformance kit: what every plugin promises, as named tests.

In a plugin's own tests::

    import pytest
    from gradian_core.testing import promises

    @pytest.mark.parametrize("promise", promises("house"), ids=str)
    def test_promise(promise):
        promise.keep()

``gradian plugins verify house`` runs the same promises without pytest. The fixtures of
:mod:`gradian_core.testing.pytest_plugin` come with
``pytest_plugins = ["gradian_core.testing.pytest_plugin"]``.
"""

from __future__ import annotations

from gradian_core.testing.kit import promises
from gradian_core.testing.promise import BrokenPromise, Promise
from gradian_core.testing.registry import isolated_registry

__all__ = ["BrokenPromise", "Promise", "isolated_registry", "promises"]
