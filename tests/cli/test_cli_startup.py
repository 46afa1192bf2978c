"""Listing is free: what must never be imported for help, listings and typing errors."""

import json
import subprocess
import sys

import pytest

HEAVY = ("h5py", "numpy", "peft", "pydantic", "sklearn", "torch", "transformers", "yaml")

DRIVER = """
import json, sys
from gradian_core.cli.app import main
code = main(json.loads(sys.argv[1]))
print(json.dumps([code, sorted(name for name in sys.modules if "." not in name)]), file=sys.stderr)
commands = [name for name in sys.modules if name.startswith("gradian_core.cli.")]
print(json.dumps(sorted(commands)), file=sys.stderr)
"""


def run(*argv):
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps(argv)],
        capture_output=True,
        text=True,
        check=True,
    )
    *err, modules, commands = done.stderr.splitlines()
    code, imported = json.loads(modules)
    return code, done.stdout, "\n".join(err), set(imported), json.loads(commands)


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        ((), 0),
        (("--help",), 0),
        (("version",), 0),
        (("--version",), 0),
        (("plugins",), 0),
        (("plugins", "list"), 0),
        (("plugins", "list", "--json", "-v"), 0),
        (("attribute", "--help"), 0),
        (("index", "-h"), 0),
        (("atribute",), 2),
        (("plugins", "lst"), 2),
        (("attribute", "--capabilty", "x"), 2),
        (("attribute", "--force=perhaps"), 2),
    ],
    ids=str,
)
def test_nothing_heavy_is_imported(argv, code):
    got, _, err, imported, _ = run(*argv)
    assert got == code, err
    assert imported.isdisjoint(HEAVY)


@pytest.mark.parametrize("argv", [("--help",), ("atribute",), ("--hlep",)], ids=" ".join)
def test_no_command_is_imported_for_the_list_of_commands(argv):
    _, _, _, _, commands = run(*argv)
    assert commands == [
        "gradian_core.cli.app",
        "gradian_core.cli.failures",
        "gradian_core.cli.streams",
    ]


def test_importing_the_package_is_free():
    program = "import sys, gradian_core; gradian_core.__version__; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()).isdisjoint({*HEAVY, "cyclopts", "pluggy", "rich"})


def test_the_public_api_is_lazy_and_complete():
    import gradian_core

    assert set(gradian_core.__all__) <= set(dir(gradian_core))
    assert gradian_core.load_config().seed == gradian_core.Config().seed
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gradian_core.nothing
