"""``gradian plugins``."""

from pathlib import Path
from typing import Annotated, Literal

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


def show_plugins(name: Annotated[str, Parameter(name="NAME")], /) -> int:
    """Print what a plugin provides: its documentation, options and needs.

    Parameters
    ----------
    name
        A plugin, a distribution, or something that a plugin provides, such as datainf.
    """
    from gradian_core.cli.plugin_page import page
    from gradian_core.cli.streams import put
    from gradian_core.plugins.registry import load_registry

    put(page(load_registry(), name))
    return 0


def verify_plugins(name: Annotated[str, Parameter(name="NAME")], /, *, strict: bool = False) -> int:
    """Test whether a plugin keeps what every plugin promises; exit with 1 if not.

    Parameters
    ----------
    name
        A plugin or a distribution.
    strict
        Stop at the first broken promise and raise what the plugin raised, for --debug.
    """
    from gradian_core.cli.streams import put, say
    from gradian_core.plugins.registry import load_registry
    from gradian_core.testing.verify import verify

    registry = load_registry()
    for note in registry.notes:
        say(f"note: {note}")
    kept, text = verify(registry, name, strict=strict)
    put(text)
    return 0 if kept else 1


def new_plugins(
    kind: Annotated[
        Literal["check", "clusterer", "engine", "metric", "sink"], Parameter(name="KIND")
    ],
    name: Annotated[str, Parameter(name="NAME")],
    /,
    *,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
) -> int:
    """Write a whole package with one working plugin, to be edited.

    Parameters
    ----------
    kind
        What it adds.
    name
        Name of what it adds; a check's may have its family in front, as in house.no_emails.
    out
        Folder to be made; gradian-NAME in the working directory if not given.
    """
    from gradian_core.cli.streams import put
    from gradian_core.scaffold.write import new_package

    put(new_package(kind, name, out))
    return 0
