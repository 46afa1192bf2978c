"""The conformance kit without pytest."""

from __future__ import annotations

from gradian_core.errors import PluginError
from gradian_core.plugins.record import State
from gradian_core.plugins.registry import Registry
from gradian_core.testing.kit import find_plugins, promises
from gradian_core.testing.promise import BrokenPromise
from gradian_core.text import excerpt, safe_text

__all__ = ["verify"]


def verify(registry: Registry, name: str, *, strict: bool = False) -> tuple[bool, str]:
    """Keep every promise of a plugin.

    Parameters
    ----------
    registry
        Where it is.
    name
        Its entry point name, or the distribution.
    strict
        Raise at the first broken promise.

    Returns
    -------
    tuple
        Whether all were kept, and a line for each with what was wrong.

    Raises
    ------
    UsageError
        If there is no such plugin.
    PluginError
        Only if ``strict``; the plugin's own error is its cause.
    """
    owners = find_plugins(registry, name)
    lines, broken = [], 0
    kept = promises(name, registry=registry)
    for promise in kept:
        try:
            promise.keep()
        except BrokenPromise as error:
            if strict:
                cause = error.__cause__
                raise PluginError(f"{promise.id} is broken: {error}", owner=owners[0].owner) from (
                    cause or error
                )
            broken += 1
            lines.append(f"BROKEN  {promise.id}: {promise.says}")
            lines.append(f"        {excerpt(str(error), 600)}")
        else:
            lines.append(f"kept    {promise.id}: {promise.says}")
    lines = [safe_text(line) for line in lines]
    who = ", ".join(safe_text(f"{o.name} ({o.distribution} {o.version})") for o in owners)
    blocked = [owner for owner in owners if owner.state is State.BLOCKED]
    if blocked:
        lines.append("It is blocked; take it out of GRADIAN_BLOCK to examine it.")
    lines.append(f"{who}: {len(kept) - broken} of {len(kept)} promises kept.")
    return not broken, "\n".join(lines)
