"""``gradian show-index``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def show_index(
    path: Annotated[Path, Parameter(name="PATH")],
    /,
    *,
    json: bool = False,
) -> int:
    """Print what an index was built from.

    Parameters
    ----------
    path
        Folder of the index, or the folder that holds it if it holds no other.
    json
        Print the whole manifest as JSON.
    """
    from gradian_core.cli.manifest import find_index, summary
    from gradian_core.cli.streams import put
    from gradian_core.index.manifest import read_manifest

    manifest = read_manifest(find_index(path))
    put(manifest.model_dump_json(indent=2) if json else summary(manifest))
    return 0
