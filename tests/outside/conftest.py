"""A fresh virtual environment with wheels in it, as a user has it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import venv
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

HEAD = "from gradian_core.hookspecs import hookimpl\nfrom gradian_core.specs import *\n"


def build_wheel(project, out):
    """Build a wheel with hatchling, which is all that our projects need."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=project,
        check=True,
        capture_output=True,
    )
    (wheel,) = out.glob("*.whl")
    return wheel


def write_wheel(out, dist, entry_points, modules=(), metadata_name=None):
    """Write a wheel by hand: no build tool would write some of these."""
    stem = f"{dist.replace('-', '_')}-1.0"
    path = out / f"{stem}-py3-none-any.whl"
    info = f"{stem}.dist-info"
    files = {
        **{f"{name}.py": HEAD + textwrap.dedent(source) for name, source in dict(modules).items()},
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {metadata_name or dist}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": entry_points,
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
        archive.writestr(f"{info}/RECORD", record)
    return path


class Environment:
    """A virtual environment that sees the packages of this one, after its own."""

    def __init__(self, folder):
        self.folder = folder
        venv.create(folder, with_pip=False, symlinks=True)
        self.bin = folder / ("Scripts" if os.name == "nt" else "bin")
        (self.site,) = (folder / "lib").glob("python*/site-packages")
        here = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
        (self.site / "_packages_of_the_tests.pth").write_text("\n".join(here))

    def install(self, *wheels):
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install"]
        options = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--force-reinstall"]
        subprocess.run([*pip, *options, *map(str, wheels)], check=True, capture_output=True)

    def run(self, *command, cwd=None, **environment):
        """Run a program of the environment; nothing of this checkout is on its path."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "GRADIAN"))}
        return subprocess.run(
            [str(self.bin / command[0]), *map(str, command[1:])],
            cwd=cwd or self.folder,
            env={**clean, "OMP_NUM_THREADS": "1", **environment},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="session")
def core_wheel(tmp_path_factory):
    return build_wheel(ROOT, tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="session")
def example_wheels(tmp_path_factory):
    return [
        build_wheel(EXAMPLES / name, tmp_path_factory.mktemp(name))
        for name in ("gradian-check-example", "gradian-engine-example")
    ]


@pytest.fixture(scope="session")
def outside(tmp_path_factory, core_wheel, example_wheels):
    """An environment with gradian-ml and both examples."""
    made = Environment(tmp_path_factory.mktemp("outside") / "venv")
    made.install(core_wheel, *example_wheels)
    return made


@pytest.fixture(scope="session")
def alone(tmp_path_factory, core_wheel):
    """An environment with gradian-ml only, to be spoiled."""
    made = Environment(tmp_path_factory.mktemp("alone") / "venv")
    made.install(core_wheel)
    return made


@pytest.fixture(scope="session")
def wheels():
    return SimpleNamespace(write=write_wheel, build=build_wheel)


@pytest.fixture(scope="session")
def examples():
    return EXAMPLES
