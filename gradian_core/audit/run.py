"""Running checks on facts: every check has an answer, and none takes another one down."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.fold import fold
from gradian_core.audit.gather import FactSource, Missing
from gradian_core.audit.select import selected
from gradian_core.check import Check
from gradian_core.errors import GradianError, PluginError
from gradian_core.findings import Finding
from gradian_core.plugins.failure import guard
from gradian_core.plugins.record import Provided
from gradian_core.plugins.registry import Registry
from gradian_core.progress import NoProgress, Progress
from gradian_core.specs import CheckSpec

__all__ = ["Answer", "AuditResult", "Outcome", "run_check", "run_checks"]


class Answer(enum.StrEnum):
    """What came of a check."""

    FOUND = "found"
    CLEAN = "clean"
    NOT_ASSESSED = "not assessed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer of one check.

    Parameters
    ----------
    check
        Its id.
    answer
        What came of it.
    why
        Why it was not assessed or failed, as a sentence; else empty.
    unlock
        Options with which it could be assessed, all of them needed.
    findings
        What it found.
    """

    check: str
    answer: Answer
    why: str = ""
    unlock: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """The answers of all checks.

    Parameters
    ----------
    findings
        Folded: each root cause with its consequences after it, the worst first.
    outcomes
        One a check, sorted by id.
    """

    findings: tuple[Finding, ...]
    outcomes: tuple[Outcome, ...]

    def of(self, answer: Answer) -> tuple[Outcome, ...]:
        """Return the outcomes with one answer."""
        return tuple(outcome for outcome in self.outcomes if outcome.answer is answer)


def run_checks(
    registry: Registry,
    facts: FactSource,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    *,
    progress: Progress | None = None,
) -> AuditResult:
    """Run the installed checks.

    Parameters
    ----------
    registry
        The installed plugins.
    facts
        Where checks get their facts; facts that no check asks for are not computed.
    select, ignore
        Ids and patterns (``data.*``) of those to run, and of those to leave out.
    progress
        Where to report.

    Raises
    ------
    UsageError
        For an id or a pattern that matches no check.
    InputError
        If what the user handed in cannot be read.
    """
    names = selected(registry.checks, select, ignore)
    outcomes = []
    with (progress or NoProgress()).task("Checking", len(names)) as task:
        for name in names:
            outcomes.append(_run(registry, name, facts))
            task.advance()
    findings = [finding for outcome in outcomes for finding in outcome.findings]
    return AuditResult(findings=fold(findings), outcomes=tuple(outcomes))


def _run(registry: Registry, name: str, facts: FactSource) -> Outcome:
    provided = registry.checks[name]
    try:
        check = registry.create("check", name)
    except GradianError as error:
        return Outcome(check=name, answer=Answer.FAILED, why=str(error))
    return run_check(provided, check, facts)


def run_check(provided: Provided[CheckSpec], check: Check, facts: FactSource) -> Outcome:
    """Run one check.

    Parameters
    ----------
    provided
        Who provides it.
    check
        The check.
    facts
        Where it gets its facts.

    Raises
    ------
    InputError
        If what the user handed in cannot be read.
    """
    name = provided.spec.name
    needed = {fact: facts.get(fact) for fact in check.needs}
    absent = [value for value in needed.values() if isinstance(value, Missing)]
    if absent:
        flags = {flag for missing in absent for flag in missing.unlock}
        why = " ".join(dict.fromkeys(missing.why for missing in absent))
        return Outcome(check=name, answer=Answer.NOT_ASSESSED, why=why, unlock=tuple(sorted(flags)))
    for fact in check.wants:
        value = facts.get(fact)
        needed[fact] = None if isinstance(value, Missing) else value
    try:
        with guard(provided.owner, f"Check {name}"):
            try:
                findings = tuple(check(**needed))
            except NotAssessed as reason:
                return Outcome(check=name, answer=Answer.NOT_ASSESSED, why=str(reason))
            _refuse_strangers(name, findings, provided.owner)
    except GradianError as error:
        if isinstance(error.__cause__, MemoryError):
            raise
        return Outcome(check=name, answer=Answer.FAILED, why=str(error))
    answer = Answer.FOUND if findings else Answer.CLEAN
    return Outcome(check=name, answer=answer, findings=findings)


def _refuse_strangers(name: str, findings: tuple[object, ...], owner: str) -> None:
    for finding in findings:
        if not isinstance(finding, Finding):
            raise PluginError(
                f"Check {name} yielded {type(finding).__name__}, not a Finding.", owner=owner
            )
        if finding.id != name:
            raise PluginError(
                f"Check {name} yielded a finding called {finding.id!r}; its id is the check's.",
                owner=owner,
            )
