"""What ``gradian doctor`` looks at."""

from __future__ import annotations

import json
import os
import platform
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from gradian_core.__about__ import __version__
from gradian_core.cli.table import aligned
from gradian_core.plugins.failure import describe
from gradian_core.plugins.record import State, missing
from gradian_core.plugins.registry import Registry, load_registry
from gradian_core.versions import EXTRAS, SUPPORTED, importable, installed_version

__all__ = ["Examination", "Line", "examine"]

_CACHE = Path(".gradian")
_DETERMINISM = ("CUBLAS_WORKSPACE_CONFIG", "PYTHONHASHSEED", "NVIDIA_TF32_OVERRIDE")
_LOW_DISK = 5 << 30


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was looked at.

    Parameters
    ----------
    section
        Heading that it stands under.
    name
        What it is.
    value
        What was found.
    warning
        What is wrong with it; empty if nothing is.
    """

    section: str
    name: str
    value: str
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Examination:
    """All that was looked at, in the order of printing."""

    lines: tuple[Line, ...]

    def as_text(self) -> str:
        """Return sections of aligned lines and a last line that counts the warnings."""
        out: list[str] = []
        for section in dict.fromkeys(line.section for line in self.lines):
            rows = [
                (f"  {line.name}", line.value, line.warning and f"warning: {line.warning}")
                for line in self.lines
                if line.section == section
            ]
            out += [section, *aligned(rows), ""]
        warnings = sum(bool(line.warning) for line in self.lines)
        return "\n".join([*out, f"{warnings} warnings." if warnings else "All is well."])

    def as_json(self) -> str:
        """Return a JSON object with a schema version."""
        body = {"schema_version": "1.0", "checks": [asdict(line) for line in self.lines]}
        return json.dumps(body, indent=2)


def examine() -> Examination:
    """Look at everything; torch is imported if it is there, and may fail without harm."""
    registry = load_registry()
    lines = [
        Line("gradian", "version", __version__),
        Line("gradian", "python", platform.python_version()),
        Line("gradian", "platform", platform.platform()),
        *(_library(name) for name in SUPPORTED),
        *(_extra(name) for name in EXTRAS),
        *_devices(),
        *(Line("determinism", name, os.environ.get(name, "not set")) for name in _DETERMINISM),
        *_plugins(registry),
        *_trainers(registry),
        *_disk(_CACHE),
    ]
    return Examination(tuple(lines))


def _library(name: str) -> Line:
    version = installed_version(name)
    if version is None:
        return Line("libraries", name, "not installed")
    problem = SUPPORTED[name].problem(version)
    return Line("libraries", name, version, f"it is {problem}" if problem else "")


def _extra(name: str) -> Line:
    absent = [module for module in EXTRAS[name] if not importable(module)]
    if not absent:
        return Line("extras", name, "installed")
    return Line("extras", name, f"missing {', '.join(absent)}: pip install 'gradian-ml[{name}]'")


def _devices() -> list[Line]:
    if not importable("torch"):
        return [Line("devices", "torch", "not installed")]
    try:
        import torch

        cuda = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
        lines = [
            Line("devices", "cpu", f"{torch.get_num_threads()} threads"),
            *(_cuda_device(number) for number in cuda),
        ]
        if not cuda:
            lines.append(Line("devices", "cuda", "none visible"))
        if torch.backends.mps.is_available():
            lines.append(Line("devices", "mps", "available; used only when asked for"))
        tf32 = "on" if torch.backends.cuda.matmul.allow_tf32 else "off"
        deterministic = "on" if torch.are_deterministic_algorithms_enabled() else "off until used"
    except Exception as error:  # noqa: BLE001 - a broken torch is what doctor is for
        return [Line("devices", "torch", "cannot be used", describe(error))]
    return [
        *lines,
        Line("determinism", "TF32 matrix products", tf32),
        Line("determinism", "deterministic kernels", deterministic),
    ]


def _cuda_device(number: int) -> Line:
    import torch

    name = f"cuda:{number}"
    try:
        free, total = torch.cuda.mem_get_info(number)
        about = f"{torch.cuda.get_device_name(number)}, {_size(free)} of {_size(total)} free"
    except Exception as error:  # noqa: BLE001 - one broken device must not hide the others
        return Line("devices", name, "cannot be used", describe(error))
    return Line("devices", name, about)


def _plugins(registry: Registry) -> list[Line]:
    fine = sum(record.state is State.OK for record in registry.plugins)
    return [
        Line("plugins", "ok", str(fine)),
        *(
            Line("plugins", record.name, str(record.state), record.reason)
            for record in registry.plugins
            if record.state is not State.OK
        ),
    ]


def _trainers(registry: Registry) -> list[Line]:
    lines = []
    for name, provided in registry.trainers.items():
        absent = missing("trainer", provided.spec)
        lines.append(Line("trainers", name, "available" if absent is None else str(absent)))
    return lines


def _disk(cache: Path) -> list[Line]:
    there = next(
        folder for folder in (cache.absolute(), *cache.absolute().parents) if folder.exists()
    )
    writable = os.access(there, os.W_OK) and there.is_dir()
    free = shutil.disk_usage(there).free
    return [
        Line(
            "disk",
            "cache folder",
            str(cache),
            "" if writable else f"{there} cannot be written to; use --cache-dir",
        ),
        Line(
            "disk",
            "free",
            _size(free),
            "an index of a 1B model and 2,000 rows takes up to 90 GB" if free < _LOW_DISK else "",
        ),
    ]


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.1f} GiB"
