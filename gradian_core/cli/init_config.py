"""``gradian init-config``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def init_config(
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("gradian.yaml"),
    base_model: Annotated[str, Parameter(name=["--base-model", "-m"])] = "",
    force: bool = False,
) -> int:
    """Write a starter config file with every setting, its default and what it means.

    Parameters
    ----------
    out
        Where to write it.
    base_model
        Base model to fill in.
    force
        Overwrite a file that is there.
    """
    from gradian_core.cli.streams import put, say
    from gradian_core.config.starter import starter_text
    from gradian_core.errors import UsageError
    from gradian_core.files import write_atomic
    from gradian_core.plugins.registry import load_registry
    from gradian_core.plugins.schema import own_options

    if out.is_dir():
        raise UsageError(f"{out} is a folder.", hint=f"Name a file: -o {out / 'gradian.yaml'}.")
    if out.exists() and not force:
        raise UsageError(f"{out} is already there.", hint="Overwrite it with --force.")
    write_atomic(out, starter_text(base_model, own_options(load_registry(), say)))
    put(str(out))
    return 0
