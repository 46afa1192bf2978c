"""``gradian plugins``."""

from typing import Annotated

from cyclopts import Parameter


def list_plugins(
    *,
    json: bool = False,
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"])] = False,
) -> int:
    """List installed plugins, what they provide and what is wrong.

    Parameters
    ----------
    json
        Print JSON.
    verbose
        Print each thing that a plugin provides on a line of its own.
    """
    from gradian_core.cli.listing import as_json, as_text
    from gradian_core.cli.streams import put
    from gradian_core.plugins.registry import load_registry

    registry = load_registry()
    put(as_json(registry) if json else as_text(registry, verbose=verbose))
    return 0
