"""Which libraries are installed, and which versions Gradian is developed and tested with.

Read from package metadata and the import system: nothing is imported.
"""

from __future__ import annotations

import importlib.util
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata

__all__ = [
    "EXTRAS",
    "NUMERIC",
    "SUPPORTED",
    "Window",
    "importable",
    "installed_version",
    "library_versions",
]

EXTRAS = {
    "attribution": ("hdbscan", "peft", "safetensors", "sklearn", "torch"),
    "cluster": ("sentence_transformers",),
    "data": ("datasets", "pyarrow"),
    "ekfac": ("kronfluence",),
    "gguf": ("gguf",),
    "train": ("accelerate", "datasets", "trl"),
    "unsloth": ("unsloth",),
}
"""Top-level modules that each extra of gradian-ml brings."""

NUMERIC = (
    "gradian-ml",
    "numpy",
    "peft",
    "safetensors",
    "scikit-learn",
    "tokenizers",
    "torch",
    "transformers",
)
"""Distributions whose version can change a number."""


@dataclass(frozen=True, slots=True)
class Window:
    """The supported versions of a library.

    Parameters
    ----------
    minimum
        Oldest version that the package metadata accept.
    tested
        Newest release series that the tests ran with; newer ones may work.
    """

    minimum: str
    tested: str

    def problem(self, version: str) -> str | None:
        """Return ``older than …`` or ``newer than …``, or None for a version inside."""
        if _release(version) < _release(self.minimum):
            return f"older than {self.minimum}, the oldest supported"
        newest = _release(self.tested)
        if _release(version)[: len(newest)] > newest:
            return f"newer than {self.tested}, the newest tested"
        return None


SUPPORTED = {
    "cyclopts": Window("4.8", "5.5"),
    "h5py": Window("3.11", "3.16"),
    "hdbscan": Window("0.8.38", "0.8"),
    "kronfluence": Window("1.0.1", "1.0"),
    "numpy": Window("1.26", "2.4"),
    "peft": Window("0.18", "0.21"),
    "pluggy": Window("1.6", "1.7"),
    "pydantic": Window("2.8", "2.14"),
    "safetensors": Window("0.4.3", "0.8"),
    "scikit-learn": Window("1.5", "1.9"),
    "torch": Window("2.4", "2.13"),
    "transformers": Window("4.52", "5.24"),
}
"""Supported window of each library that decides whether or how Gradian works."""


def importable(module: str) -> bool:
    """Return whether a top-level module is installed, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        # Raised for a module in sys.modules that has no spec, or None in its place.
        return False


def installed_version(distribution: str) -> str | None:
    """Return the installed version of a distribution, or None if it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def library_versions(distributions: Iterable[str] = NUMERIC) -> dict[str, str]:
    """Return the versions of Python and of those distributions that are installed, by name."""
    found = {name: installed_version(name) for name in sorted(distributions)}
    versions = {name: version for name, version in found.items() if version is not None}
    return {"python": platform.python_version(), **versions}


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version's release segment: ``2.13.0+cpu`` gives (2, 13, 0)."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match.group().split(".")) if match else ()
