"""All promises of a plugin, from what it declares."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from gradian_core.errors import UsageError
from gradian_core.plugins.discovery import canonical
from gradian_core.plugins.record import Kind, PluginRecord, Provided, State, missing
from gradian_core.plugins.registry import Registry, load_registry
from gradian_core.testing.declaring import declaring_promises, thing_promises
from gradian_core.testing.promise import BrokenPromise, Promise
from gradian_core.text import did_you_mean, excerpt

__all__ = ["find_plugins", "promises"]

# By import string: a kit for engines imports numpy, and nothing is imported before it is used.
_KITS: dict[Kind, str] = {
    "check": "gradian_core.testing.checks",
    "clusterer": "gradian_core.testing.clusterers",
    "engine": "gradian_core.testing.engines",
    "metric": "gradian_core.testing.metrics",
    "run_reader": "gradian_core.testing.run_readers",
    "sink": "gradian_core.testing.sinks",
}


def promises(name: str, *, registry: Registry | None = None) -> list[Promise]:
    """Return every promise of a plugin, to be kept one by one.

    Parameters
    ----------
    name
        Entry point name of the plugin, or the distribution that installed it.
    registry
        Where to look; the plugins that are installed if None.

    Raises
    ------
    UsageError
        If there is no such plugin.
    """
    registry = registry or load_registry()
    return [p for record in find_plugins(registry, name) for p in _of(registry, record)]


def find_plugins(registry: Registry, name: str) -> tuple[PluginRecord, ...]:
    """Return the plugins that an entry point name or a distribution stands for.

    Raises
    ------
    UsageError
        If there is none.
    """
    found = tuple(record for record in registry.plugins if record.name == name) or tuple(
        record for record in registry.plugins if canonical(record.distribution) == canonical(name)
    )
    if not found:
        names = {record.name for record in registry.plugins}
        hint = did_you_mean(name, names | {record.distribution for record in registry.plugins})
        raise UsageError(
            f"There is no plugin {excerpt(repr(name), 80)}.",
            hint=f"{hint or ''} See 'gradian plugins list'; is its package installed?".strip(),
        )
    return found


def _of(registry: Registry, record: PluginRecord) -> Iterator[Promise]:
    yield Promise(
        id=f"plugin:{record.name}:loads",
        says="it loads, declares something, and clashes with nothing",
        test=lambda: _loads(record),
    )
    if record.state not in {State.OK, State.UNAVAILABLE, State.CLASH}:
        return
    yield from declaring_promises(record)
    for kind, spec in record.provides:
        provided = Provided(spec, record)
        mine = registry.claims.get((kind, spec.name), ())
        if len(mine) != 1 or mine[0].plugin.owner != record.owner or missing(kind, spec):
            # A clash or a missing package breaks "loads"; what nobody can make is not examined.
            continue
        yield from thing_promises(registry, kind, provided)
        if kind in _KITS:
            yield from import_module(_KITS[kind]).promises_of(registry, provided)


def _loads(record: PluginRecord) -> None:
    if record.state is not State.OK or record.reason:
        raise BrokenPromise(f"Its state is {record.state}: {record.reason}")
    if not record.provides:
        raise BrokenPromise("It declares nothing: no hook yields a spec.")
