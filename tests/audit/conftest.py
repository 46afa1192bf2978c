"""Made-up checks and registries of them."""

from __future__ import annotations

import itertools
import sys
from types import ModuleType

import pytest

from gradian_core.audit.facts import NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.plugins.record import PluginRecord, Provided, State
from gradian_core.plugins.registry import Registry
from gradian_core.specs import CheckSpec

_NUMBERS = itertools.count()


class House:
    """Makes registries of check functions, ``name=function``; their family is ``house``."""

    def __init__(self, monkeypatch):
        self._monkeypatch = monkeypatch

    def __call__(self, **functions):
        module = ModuleType(f"house_checks_{next(_NUMBERS)}")
        self._monkeypatch.setitem(sys.modules, module.__name__, module)
        record = PluginRecord(
            name="house",
            distribution="house-checks",
            version="1.2",
            module=module.__name__,
            state=State.OK,
        )
        claims = {}
        for name, function in functions.items():
            if callable(function):
                function.__doc__ = function.__doc__ or "A check."
                declare = check(severity=Severity.HIGH, since="0.1", trips=dict, clean=dict)
                function = declare(function)
            setattr(module, name, function)
            spec = CheckSpec(
                name=f"house.{name}", summary=f"about {name}", factory=f"{module.__name__}:{name}"
            )
            claims["check", spec.name] = (Provided(spec, record),)
        return Registry(plugins=(record,), claims=claims)

    @staticmethod
    def found(name, severity=Severity.HIGH, **values):
        """Return a check function that finds one thing."""
        values.setdefault("title", f"{name}!")

        def function(examples):
            yield Finding(id=f"house.{name}", severity=severity, **values)

        return function

    @staticmethod
    def clean(examples):
        """Find nothing."""
        return ()

    @staticmethod
    def unable(examples):
        """Decline."""
        raise NotAssessed("There is too little of it.")

    @staticmethod
    def broken(examples):
        """Fail."""
        raise ZeroDivisionError("nothing to divide by")


@pytest.fixture
def house(monkeypatch):
    return House(monkeypatch)
