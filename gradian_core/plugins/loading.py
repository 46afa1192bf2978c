"""From what is installed to what can be used: blocking, loading, clashes, missing packages."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from gradian_core.hookspecs import GROUP
from gradian_core.plugins.discovery import BUILT_IN, Candidate, canonical
from gradian_core.plugins.manager import PluginFault, load_specs
from gradian_core.plugins.record import (
    HOOK_OF,
    Kind,
    PluginRecord,
    Provided,
    State,
    label,
    missing,
)
from gradian_core.text import excerpt

__all__ = ["Claims", "load_records", "settle", "unmatched"]

Claims = Mapping[tuple[Kind, str], tuple[Provided[Any], ...]]
"""Who provides each name."""

_KIND_OF = {hook: kind for kind, hook in HOOK_OF.items()}


def load_records(candidates: Iterable[Candidate], block: frozenset[str]) -> list[PluginRecord]:
    """Load each plugin that is not blocked; a failing one is recorded and disturbs no other."""
    # What a plugin prints while it is imported must not end up in our results.
    with contextlib.redirect_stdout(sys.stderr):
        return [_load(candidate, block) for candidate in candidates]


def unmatched(candidates: Collection[Candidate], block: frozenset[str]) -> tuple[str, ...]:
    """Return the blocked names that no installed plugin or distribution has."""
    plugins = {candidate.name for candidate in candidates}
    distributions = {canonical(candidate.distribution) for candidate in candidates}
    return tuple(sorted(b for b in block - plugins if canonical(b) not in distributions))


def settle(records: Iterable[PluginRecord]) -> tuple[tuple[PluginRecord, ...], Claims]:
    """Decide clashes and look for missing packages.

    A name that a built-in plugin provides stays the built-in's. A name that two other plugins
    provide belongs to neither: picking one would make results depend on what else is installed.
    The other names of a plugin with a clash remain usable.

    Returns
    -------
    tuple
        The records with their final states, and for each name who provides it: one provider,
        or all rivals where nobody has it.
    """
    records = list(records)
    rivals: dict[tuple[Kind, str], list[PluginRecord]] = {}
    for record in records:
        for kind, spec in record.provides:
            rivals.setdefault((kind, spec.name), []).append(record)
    holders = {key: _holders(claimants) for key, claimants in rivals.items()}

    final = tuple(_judge(record, rivals, holders) for record in records)
    by_identity = {id(old): new for old, new in zip(records, final, strict=True)}
    claims: dict[tuple[Kind, str], tuple[Provided[Any], ...]] = {}
    for record in records:
        for kind, spec in record.provides:
            key = (kind, spec.name)
            if record in holders[key]:
                provided = Provided(spec, by_identity[id(record)])
                claims[key] = (*claims.get(key, ()), provided)
    return final, claims


def _load(candidate: Candidate, block: frozenset[str]) -> PluginRecord:
    record = PluginRecord(
        name=candidate.name,
        distribution=candidate.distribution,
        version=candidate.version,
        module=candidate.module,
        state=State.OK,
    )
    if candidate.name in block or canonical(candidate.distribution) in map(canonical, block):
        return replace(record, state=State.BLOCKED, reason="blocked by GRADIAN_BLOCK or the config")
    if candidate.group != GROUP:
        group = excerpt(candidate.group, 60)
        reason = f"made for plugin API {group}; this gradian-ml has {GROUP}: update one of them"
        return replace(record, state=State.INCOMPATIBLE, reason=reason)
    try:
        declared = load_specs(candidate)
    except PluginFault as fault:
        cause = fault.__cause__
        return replace(record, state=State.FAILED, reason=str(fault), error=cause)
    return replace(record, provides=tuple((_KIND_OF[hook], spec) for hook, spec in declared))


def _holders(claimants: list[PluginRecord]) -> list[PluginRecord]:
    """Return the one record that keeps a name, or all of them where nobody may."""
    built_in = [record for record in claimants if canonical(record.distribution) == BUILT_IN]
    return built_in if len(built_in) == 1 else claimants


def _judge(
    record: PluginRecord,
    rivals: Mapping[tuple[Kind, str], list[PluginRecord]],
    holders: Mapping[tuple[Kind, str], list[PluginRecord]],
) -> PluginRecord:
    clashes = []
    for kind, spec in record.provides:
        key = (kind, spec.name)
        others = [other for other in rivals[key] if other is not record]
        if not others or holders[key] == [record]:
            continue
        names = " and ".join(f"{o.distribution} {o.version} ({o.name})" for o in others)
        outcome = "neither is used" if record in holders[key] else "the built-in one is kept"
        clashes.append(f"{label(kind, spec.name)} is also provided by {names}; {outcome}")
    if clashes:
        return replace(record, state=State.CLASH, reason="; ".join(clashes))
    absent = [error for kind, spec in record.provides if (error := missing(kind, spec))]
    if not absent:
        return record
    state = State.UNAVAILABLE if len(absent) == len(record.provides) else State.OK
    return replace(record, state=state, reason="; ".join(dict.fromkeys(map(str, absent))))
