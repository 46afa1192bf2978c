"""``gradian doctor``."""

from typing import Annotated

from cyclopts import Parameter


def doctor(*, json: Annotated[bool, Parameter(name="--json")] = False) -> int:
    """Check packages, devices, plugins and disk; it warns and does not fail.

    Parameters
    ----------
    json
        Print JSON.
    """
    from gradian_core.cli.environment import examine
    from gradian_core.cli.streams import put

    examination = examine()
    put(examination.as_json() if json else examination.as_text())
    return 0
