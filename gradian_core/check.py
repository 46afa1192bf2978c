"""How an audit check is written.

A check is a function whose parameter *names* are the facts it needs, from a closed vocabulary
(:data:`FACTS`); parameters with the default None are facts that it uses if they are there. It
yields findings, or nothing when all is well, and raises
:class:`gradian_core.audit.facts.NotAssessed` where it cannot judge::

    from collections.abc import Iterator

    from gradian_core.audit.samples import rows
    from gradian_core.check import check
    from gradian_core.findings import Finding, Severity

    @check(
        severity=Severity.LOW,
        since="0.1",
        trips=lambda: {"examples": rows(n=3)},
        clean=lambda: {"examples": rows(n=50)},
    )
    def tiny_dataset(examples) -> Iterator[Finding]:
        \"\"\"Dataset too small for reliable attribution.\"\"\"
        if len(examples) < 20:
            yield Finding(
                id="house.tiny_dataset",
                severity=Severity.LOW,
                title=f"only {len(examples)} training rows",
            )
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gradian_core.errors import PluginError
from gradian_core.findings import Finding, Severity

__all__ = ["FACTS", "Check", "check"]

FACTS = frozenset(
    {
        "adapter",
        "eval_examples",
        "eval_tokens",
        "examples",
        "log",
        "tokenizer",
        "tokens",
        "training",
    }
)
"""Facts that a check may ask for by naming them as parameters."""

CheckFunction = Callable[..., Iterable[Finding]]
Facts = Mapping[str, Any]
Sample = Callable[[], Facts]
"""Builds the facts of a small example, by name."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check function with what its decorator declared.

    Parameters
    ----------
    function
        The check.
    severity
        The worst severity that it can give.
    since
        Version in which it appeared.
    needs
        Facts that it cannot do without.
    wants
        Facts that it uses where they are there: parameters with the default None.
    trips, clean
        Small examples on which it must find something, and nothing. They are tests and
        documentation at once.
    """

    function: CheckFunction
    severity: Severity
    since: str
    needs: tuple[str, ...]
    wants: tuple[str, ...]
    trips: Sample
    clean: Sample

    @property
    def name(self) -> str:
        """Name of the function, which is the second half of the check's id."""
        return self.function.__name__

    @property
    def page(self) -> str:
        """The check's documentation."""
        return inspect.getdoc(self.function) or ""

    def __call__(self, **facts: object) -> Iterable[Finding]:
        """Run the check on the facts it named."""
        wanted = {name: facts.get(name) for name in self.wants}
        return self.function(**{name: facts[name] for name in self.needs}, **wanted)


def check(
    *, severity: Severity, since: str, trips: Sample, clean: Sample
) -> Callable[[CheckFunction], Check]:
    """Declare a function as an audit check.

    Parameters
    ----------
    severity
        The worst severity that the check can give.
    since
        Version in which it appeared.
    trips, clean
        Build facts on which the check finds something, and nothing.

    Raises
    ------
    PluginError
        If a parameter is not the name of a fact, or the docstring is missing.
    """

    def declare(function: CheckFunction) -> Check:
        parameters = inspect.signature(function).parameters
        needs = tuple(n for n, p in parameters.items() if p.default is p.empty)
        wants = tuple(n for n, p in parameters.items() if p.default is not p.empty)
        unknown = [name for name in parameters if name not in FACTS]
        owner = f"{function.__module__}:{function.__name__}"
        if unknown:
            raise PluginError(
                f"Check {function.__name__} asks for unknown facts: {', '.join(unknown)}.",
                owner=owner,
                hint=f"Facts are: {', '.join(sorted(FACTS))}.",
            )
        if not inspect.getdoc(function):
            raise PluginError(f"Check {function.__name__} has no docstring.", owner=owner)
        return Check(function, severity, since, needs, wants, trips, clean)

    return declare
