"""``gradian version``."""

from gradian_core.__about__ import __version__
from gradian_core.cli.streams import put


def version() -> int:
    """Print the installed version."""
    put(__version__)
    return 0
