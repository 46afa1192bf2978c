"""Registries of checks: made-up ones, and Gradian's own whether or not they are installed."""

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


@pytest.fixture
def house(monkeypatch):
    """Make a registry of check functions, ``name=function``; each gets the family ``house``."""

    def build(**functions):
        module = ModuleType(f"house_checks_{next(_NUMBERS)}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
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
                function = check(severity=Severity.HIGH, since="0.1", trips=dict, clean=dict)(
                    function
                )
            setattr(module, name, function)
            spec = CheckSpec(
                name=f"house.{name}", summary=f"about {name}", factory=f"{module.__name__}:{name}"
            )
            claims["check", spec.name] = (Provided(spec, record),)
        return Registry(plugins=(record,), claims=claims)

    return build


def found(name, severity=Severity.HIGH, **values):
    """Return a check function that finds one thing."""

    def function(examples):
        yield Finding(
            id=f"house.{name}", severity=severity, title=values.pop("title", f"{name}!"), **values
        )

    return function


def clean(examples):
    """Find nothing."""
    return ()


def unable(examples):
    """Decline."""
    raise NotAssessed("There is too little of it.")


def broken(examples):
    """Fail."""
    raise ZeroDivisionError("nothing to divide by")
