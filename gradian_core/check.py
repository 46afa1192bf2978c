"""How an audit check is written.

A check is a function whose parameter *names* are the facts it needs, from a closed vocabulary
(:data:`FACTS`). It yields findings, or nothing when all is well::

    from collections.abc import Iterator

    from gradian_core.check import check
    from gradian_core.findings import Finding, Severity

    @check(severity=Severity.LOW, since="0.1")
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
from collections.abc import Callable, Iterable
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Check:
    """A check function with what its decorator declared."""

    function: CheckFunction
    severity: Severity
    since: str
    needs: tuple[str, ...]

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
        return self.function(**{name: facts[name] for name in self.needs})


def check(*, severity: Severity, since: str) -> Callable[[CheckFunction], Check]:
    """Declare a function as an audit check.

    Parameters
    ----------
    severity
        The worst severity that the check can give.
    since
        Version in which it appeared.

    Raises
    ------
    PluginError
        If a parameter is not the name of a fact, or the docstring is missing.
    """

    def declare(function: CheckFunction) -> Check:
        needs = tuple(inspect.signature(function).parameters)
        unknown = [name for name in needs if name not in FACTS]
        owner = f"{function.__module__}:{function.__name__}"
        if unknown:
            raise PluginError(
                f"Check {function.__name__} asks for unknown facts: {', '.join(unknown)}.",
                owner=owner,
                hint=f"Facts are: {', '.join(sorted(FACTS))}.",
            )
        if not inspect.getdoc(function):
            raise PluginError(f"Check {function.__name__} has no docstring.", owner=owner)
        return Check(function, severity, since, needs)

    return declare
