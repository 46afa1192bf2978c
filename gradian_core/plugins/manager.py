"""Loading one plugin and collecting what it declares.

Each plugin gets a pluggy manager of its own. pluggy's own loader stops at the first plugin that
cannot be imported, skips a second one of the same name without a word, ignores misspelt hooks
until asked, and calls hooks last in, first out; none of that can matter here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

import pluggy

from gradian_core import hookspecs
from gradian_core.hookspecs import GROUP, HOOKS, PROJECT
from gradian_core.plugins.discovery import Candidate
from gradian_core.plugins.failure import describe
from gradian_core.specs import CheckSpec, EngineSpec, MetricSpec, Spec
from gradian_core.text import did_you_mean, excerpt

__all__ = ["PluginFault", "load_specs"]

_MOST_SPECS = 1000
"""More from one hook is a generator that never ends."""

_NAME = re.compile(r"[a-z0-9_.-]{1,100}")
_CHECK_NAME = re.compile(r"[a-z0-9_-]+\.[a-z0-9_-]+")
_IMPORT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_MODULE = re.compile(r"[A-Za-z_]\w*")
_EXTRA = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class PluginFault(Exception):  # noqa: N818 - a record's state, never shown as an error
    """Why a plugin cannot be used, as one line; its owner is known to the caller."""


def load_specs(candidate: Candidate) -> tuple[tuple[str, Spec], ...]:
    """Import a plugin and return what it declares as ``(hook, spec)`` pairs, sorted by name.

    Raises
    ------
    PluginFault
        For anything at all that goes wrong, whatever the plugin raises. Only Ctrl-C passes.
    """
    if candidate.problem:
        raise PluginFault(candidate.problem)
    entry_point = candidate.entry_point
    # The name as installed: the candidate's own has been made safe to print.
    if entry_point is None or not _NAME.fullmatch(entry_point.name):
        raise PluginFault("its name may only hold a-z, 0-9, '_', '.' and '-'")
    try:
        plugin = entry_point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginFault(f"cannot be imported: {describe(error)}") from error
    try:
        manager = _manager(plugin, candidate.name)
        declared = tuple(
            (hook, spec) for hook in HOOKS for spec in _drain(getattr(manager.hook, hook), hook)
        )
    except (KeyboardInterrupt, PluginFault):
        raise
    except BaseException as error:
        raise PluginFault(describe(error)) from error
    _refuse_twins(declared)
    return tuple(sorted(declared, key=lambda pair: (pair[0], pair[1].name)))


def _manager(plugin: object, name: str) -> pluggy.PluginManager:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin, name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginFault(_validation_problem(manager, plugin, error)) from error
    callers = manager.get_hookcallers(plugin) or []
    if not callers:
        raise PluginFault(f"implements no hook of {GROUP}; mark them with @hookimpl")
    for caller in callers:
        for implementation in caller.get_hookimpls():
            if implementation.wrapper or implementation.hookwrapper:
                raise PluginFault(f"{caller.name} may not be a wrapper")
    return manager


def _validation_problem(
    manager: pluggy.PluginManager, plugin: object, error: pluggy.PluginValidationError
) -> str:
    """Say in one line what pluggy says in a paragraph."""
    callers = manager.get_hookcallers(plugin) or []
    unknown = sorted(caller.name for caller in callers if not caller.has_spec())
    if unknown:
        hint = did_you_mean(unknown[0], HOOKS) or f"Hooks are: {', '.join(sorted(HOOKS))}."
        return f"unknown hook {unknown[0]}. {hint}"
    message = " ".join(str(error).split())
    hook = re.search(r"for hook '(\w+)'", message)
    if hook and "Argument(s)" in message:
        return f"{hook.group(1)} has the wrong signature: hooks of {GROUP} take no arguments"
    return excerpt(message, 300)


def _drain(caller: pluggy.HookCaller, hook: str) -> Iterator[Spec]:
    # A generator raises when it is run through, not when the hook is called.
    for result in caller():
        if not isinstance(result, Iterable):
            raise PluginFault(f"{hook} must return specs, not {excerpt(type(result).__name__, 80)}")
        specs = list(itertools.islice(result, _MOST_SPECS + 1))
        if len(specs) > _MOST_SPECS:
            raise PluginFault(f"{hook} declares more than {_MOST_SPECS} specs")
        for spec in specs:
            _verify(spec, hook)
            yield spec


def _verify(spec: object, hook: str) -> None:
    expected = HOOKS[hook]
    # Exactly this class: a subclass could run code each time a field is read.
    if type(spec) is not expected:
        got = type(spec).__name__
        raise PluginFault(f"{hook} must yield {expected.__name__}, not {excerpt(got, 80)}")
    assert isinstance(spec, Spec)
    name = spec.name
    pattern, wanted = (
        (_CHECK_NAME, "'family.name' of a-z, 0-9, '_' and '-'")
        if expected is CheckSpec
        else (_NAME, "only a-z, 0-9, '_', '.' and '-'")
    )
    if not _matches(pattern, name):
        raise PluginFault(f"{hook}: the name {excerpt(repr(name), 80)} must be {wanted}")
    if not isinstance(spec.summary, str) or not spec.summary.strip():
        raise PluginFault(f"{hook}: {name} has no summary")
    if not _matches(_IMPORT, spec.factory):
        raise PluginFault(f"{hook}: the factory of {name} must read 'package.module:Name'")
    if spec.config is not None and not _matches(_IMPORT, spec.config):
        raise PluginFault(f"{hook}: the config of {name} must read 'package.module:Model'")
    if isinstance(spec, CheckSpec) and spec.config is not None:
        raise PluginFault(f"{hook}: {name} has a config, and checks take no options")
    if not isinstance(spec.requires, tuple) or not all(_matches(_MODULE, m) for m in spec.requires):
        raise PluginFault(f"{hook}: 'requires' of {name} must be a tuple of top-level modules")
    if spec.extra is not None and not _matches(_EXTRA, spec.extra):
        raise PluginFault(f"{hook}: the extra of {name} is not a name")
    if not isinstance(spec.since, str):
        raise PluginFault(f"{hook}: 'since' of {name} must be text")
    if isinstance(spec, EngineSpec) and not (spec.oracle is None or _matches(_IMPORT, spec.oracle)):
        raise PluginFault(f"{hook}: the oracle of {name} must read 'package.module:function'")
    if isinstance(spec, MetricSpec) and spec.needs not in {"generation", "likelihood"}:
        raise PluginFault(f"{hook}: 'needs' of {name} must be 'generation' or 'likelihood'")


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _refuse_twins(declared: tuple[tuple[str, Spec], ...]) -> None:
    seen = set()
    for hook, spec in declared:
        if (hook, spec.name) in seen:
            raise PluginFault(f"{hook} declares {spec.name} twice")
        seen.add((hook, spec.name))
