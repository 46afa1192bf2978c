"""``gradian show-index``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def show_index(
    path: Annotated[Path, Parameter(name="PATH")],
    /,
    *,
    json: bool = False,
    verify: bool = False,
) -> int:
    """Print what an index was built from.

    Parameters
    ----------
    path
        Folder of the index, or the folder that holds it if it holds no other.
    json
        Print the whole manifest as JSON.
    verify
        Read every gradient and check it, too; exit with 2 if something is damaged.
    """
    from gradian_core.cli.manifest import find_index, summary
    from gradian_core.cli.streams import put
    from gradian_core.index.manifest import read_manifest

    folder = find_index(path)
    manifest = read_manifest(folder)
    if verify:
        _refuse_damage(folder)
    put(manifest.model_dump_json(indent=2) if json else summary(manifest))
    return 0


def _refuse_damage(folder: Path) -> None:
    from gradian_core.cli.streams import say
    from gradian_core.errors import InputError
    from gradian_core.index.reader import GradientIndex

    problems = GradientIndex.open(folder).verify()
    if problems:
        raise InputError(
            "\n".join(problems),
            hint="Build it again: gradian index (or attribute) with --force.",
        )
    say(f"Verified: {folder}")
