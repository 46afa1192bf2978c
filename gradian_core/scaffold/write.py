"""Writing a new plugin package from templates."""

from __future__ import annotations

import builtins
import keyword
import re
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from gradian_core.__about__ import __version__
from gradian_core.errors import UsageError
from gradian_core.files import write_atomic
from gradian_core.text import excerpt

__all__ = ["new_package"]

_WORD = "[a-z](?:[a-z0-9_]*[a-z0-9])?"
_NAME = re.compile(rf"(?:({_WORD})\.)?({_WORD})")
_TAKEN = {*dir(builtins), "check", "field", "items", "rows"}
"""Names that the templates use themselves."""
_FAMILY = "house"
_LONGEST = 60


def new_package(kind: str, name: str, out: Path | None = None) -> str:
    """Write a package and return what to do next.

    Parameters
    ----------
    kind
        Folder of :file:`templates`, such as ``check``.
    name
        Name of what it adds; for a check ``family.name`` or ``name``.
    out
        Folder to be made; ``gradian-<name>`` in the working directory if None.

    Raises
    ------
    UsageError
        If the name is not one, or the folder is in use.
    """
    found = _NAME.fullmatch(name.replace("-", "_"))
    if not found or len(name) > _LONGEST or (found[1] and kind != "check"):
        family = (
            " A check may have its family in front: house.no_emails." if kind == "check" else ""
        )
        raise UsageError(
            f"{excerpt(repr(name), 80)} is no name for a new {kind}.",
            hint=f"Use a-z, 0-9 and '_', a letter first, at most {_LONGEST}.{family}",
        )
    short = found[2]
    class_name = "".join(part.capitalize() for part in short.split("_"))
    if keyword.iskeyword(short) or {short, class_name} & _TAKEN:
        raise UsageError(f"{short!r} already means something in Python.", hint="Use another name.")
    folder = out or Path(f"gradian-{short.replace('_', '-')}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is already there.", hint="Name another folder with --out.")
    words = {
        "name": short,
        "full_name": f"{found[1] or _FAMILY}.{short}" if kind == "check" else short,
        "Class": class_name,
        "kind": kind,
        "dist": f"gradian-{short.replace('_', '-')}",
        "package": f"gradian_{short}",
        "core": __version__,
    }
    templates = resources.files("gradian_core.scaffold") / "templates"
    for part in ("common", kind):
        _copy(templates / part, folder, words)
    return "\n".join(
        (
            f"{folder}: a package with the {kind} {words['full_name']}.",
            f"Edit {folder / words['package'] / short}.py, then:",
            f"  pip install -e {folder}",
            f"  gradian plugins verify {short}",
        )
    )


def _copy(source: Traversable, target: Path, words: dict[str, str]) -> None:
    for entry in sorted(source.iterdir(), key=lambda entry: entry.name):
        # Names of files are templates too.
        name = Template(entry.name).substitute(words)
        if entry.is_dir():
            _copy(entry, target / name, words)
        else:
            text = Template(entry.read_text(encoding="utf-8")).substitute(words)
            write_atomic(target / name.removesuffix(".tmpl"), text)
