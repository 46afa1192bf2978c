"""``gradian checks``."""


def list_checks(*, json: bool = False) -> int:
    """List the installed checks, what they look at and what they need.

    Parameters
    ----------
    json
        Print JSON.
    """
    from gradian_core.cli.check_listing import as_json, as_text
    from gradian_core.cli.streams import put
    from gradian_core.plugins.registry import load_registry

    registry = load_registry()
    put(as_json(registry) if json else as_text(registry))
    return 0


def show_checks(name: str) -> int:
    """Print the page of one check.

    Parameters
    ----------
    name
        Its id, such as data.duplicates.
    """
    from gradian_core.cli.check_listing import page
    from gradian_core.cli.streams import put
    from gradian_core.plugins.registry import load_registry

    put(page(load_registry(), name))
    return 0
