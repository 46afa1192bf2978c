"""``grads.module_filter`` is a stranger's expression: it must end."""

import re
import time

import pytest

from gradian_core.errors import UsageError
from gradian_core.model import sites

NAME = "model.layers.12.mlp." + "a" * 100 + "!"


def plan(pattern):
    site = sites.Site(NAME, NAME, (), None)
    return sites.plan_blocks([site], granularity="module", module_filter=pattern)


ENDLESS = [r"(a+)+$", r"(a|a)+$", r"(a|aa)+$", r"(.*a){20}b$"]


@pytest.mark.parametrize("pattern", ENDLESS)
def test_an_expression_that_backtracks_without_end(monkeypatch, pattern):
    monkeypatch.setattr(sites, "_FILTER_SECONDS", 0.2)
    started = time.monotonic()
    # some are fast in this engine; what matters is that all come to an end
    with pytest.raises(UsageError, match=r"takes too long|matches none"):
        plan(pattern)
    assert time.monotonic() - started < 5


def test_it_is_said_what_takes_too_long(monkeypatch):
    monkeypatch.setattr(sites, "_FILTER_SECONDS", 0.05)
    with pytest.raises(UsageError, match=r"module_filter: '\(a\|aa\)\+\$' takes too long"):
        plan(r"(a|aa)+$")


@pytest.mark.parametrize("pattern", ["mlp", r"layers\.(1[0-9])\.", r"(?i)MLP", "a{100}!$"])
def test_the_expressions_are_those_of_python(pattern):
    assert re.search(pattern, NAME)
    assert len(plan(pattern)[0]) == 1
