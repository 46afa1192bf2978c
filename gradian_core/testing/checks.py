"""What an audit check promises."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from gradian_core.audit.facts import NotAssessed
from gradian_core.check import Check
from gradian_core.findings import Finding, Severity
from gradian_core.plugins.record import Provided
from gradian_core.plugins.registry import Registry
from gradian_core.specs import CheckSpec
from gradian_core.testing.promise import Promise, Test, each, require

__all__ = ["promises_of"]


def promises_of(registry: Registry, provided: Provided[CheckSpec]) -> Iterator[Promise]:
    """Yield the promises of one check."""
    spec = provided.spec
    tests: list[Test[Check]] = [
        (
            "needs",
            "the facts that it declares are those of its function",
            lambda check: require(
                spec.needs == check.needs,
                f"The spec has needs={spec.needs!r}, its parameters give {check.needs!r}.",
            ),
        ),
        (
            "page",
            "its docstring opens with its summary and says why it matters",
            lambda check: _page(spec.summary, check),
        ),
        ("trips", "it finds something in its own bad example, nothing in the good one", _trips),
        (
            "findings",
            "its findings carry its id, one line, plain evidence and advice",
            lambda check: _findings(spec.name, check),
        ),
        ("deterministic", "the same facts give the same findings, in any order of runs", _repeats),
        ("pure", "it leaves the facts as they are", _is_pure),
        ("one_row", "one row crashes nothing", _survives_one_row),
    ]
    yield from each(f"check:{spec.name}", lambda: registry.create("check", spec.name), tests)


def _run(check: Check, facts: Mapping[str, Any]) -> list[Finding]:
    return list(check(**facts))


def _page(summary: str, check: Check) -> None:
    first, _, rest = check.page.partition("\n")
    require(
        first == f"{summary}.",
        f"The docstring opens with {first!r}, and listings say {summary!r}: they must agree.",
    )
    require(rest.strip(), "The docstring must say, after its first line, why it matters.")


def _trips(check: Check) -> None:
    require(_run(check, check.trips()), "It finds nothing in the example that should trip it.")
    found = _run(check, check.clean())
    require(not found, f"It finds something in its clean example: {_titles(found)}.")


def _findings(name: str, check: Check) -> None:
    for finding in _run(check, check.trips()):
        require(isinstance(finding, Finding), f"It yields {type(finding).__name__}, no Finding.")
        require(
            finding.id == name,
            f"A finding is called {finding.id!r}; its id is the check's, {name!r}.",
        )
        require(
            finding.severity.rank >= check.severity.rank,
            f"A finding is {finding.severity}; the check declares {check.severity} as its worst.",
        )
        title = finding.title
        require(
            title.strip() and title.isprintable(), f"The title {title!r} must be one plain line."
        )
        require(
            finding.fix or finding.severity is Severity.INFO,
            f"The finding {finding.title!r} does not say what to do (fix).",
        )
        try:
            json.dumps(dict(finding.evidence), allow_nan=False)
        except (TypeError, ValueError) as error:
            require(False, f"The evidence is no plain JSON: {error}.")


def _repeats(check: Check) -> None:
    first = _run(check, check.trips())
    _run(check, check.clean())
    second = _run(check, check.trips())
    require(first == second, "Run again after the clean example, it finds something else.")
    _run(check, check.trips())
    require(not _run(check, check.clean()), "After the bad example the clean one trips it.")


def _is_pure(check: Check) -> None:
    facts = dict(check.trips())
    before = {name: _fingerprint(value) for name, value in facts.items()}
    _run(check, facts)
    changed = [name for name, value in facts.items() if _fingerprint(value) != before[name]]
    require(not changed, f"It changes the facts it was given: {', '.join(changed)}.")


def _survives_one_row(check: Check) -> None:
    from gradian_core.testing.facts import demo_facts

    facts = demo_facts(n=1, only=(*check.needs, *check.wants))
    try:
        _run(check, facts)
    except NotAssessed as reason:
        require(str(reason), "NotAssessed must say why, as a sentence.")


def _titles(findings: list[Finding]) -> str:
    return "; ".join(finding.title for finding in findings)


def _fingerprint(value: object) -> object:
    """Return something that differs if the value, or what it holds, was written to."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).hexdigest()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return tuple((f.name, _fingerprint(getattr(value, f.name))) for f in fields)
    if isinstance(value, Mapping):
        return tuple((str(key), _fingerprint(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(_fingerprint, value))
    if isinstance(value, (str, bytes, int, float, bool, type(None), frozenset, set)):
        return repr(value)
    # Rows on disk and tokenizers: their own text would hold a memory address.
    return type(value).__name__
