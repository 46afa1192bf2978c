"""Start-up stays light with fifty packages installed."""

import json

import pytest

pytestmark = pytest.mark.wheels

HEAVY = {"h5py", "numpy", "pydantic", "sklearn", "torch", "transformers", "yaml"}
NEVER = {"trl", "unsloth", "bitsandbytes", "xformers"}

DRIVER = """
import json, sys
from gradian_core.cli.app import main
code = main(json.loads(sys.argv[1]))
names = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps([code, names]), file=sys.stderr)
"""

CHECK = """
@hookimpl
def gradian_checks():
    for i in range(5):
        yield CheckSpec(name=f"crowd{N}.c{i}", summary="s", factory="nowhere:c")
"""


@pytest.fixture(scope="module")
def crowded(alone, wheels, tmp_path_factory):
    out = tmp_path_factory.mktemp("crowd")
    made = []
    for n in range(50):
        points = f"[gradian.v1]\ncrowd{n} = crowd_{n}\n"
        module = {f"crowd_{n}": CHECK.replace("{N}", str(n))}
        made.append(wheels.write(out, f"crowd-{n}", points, module))
    alone.install(*made)
    return alone


def run(environment, *argv):
    done = environment.run("python", "-c", DRIVER, json.dumps(argv))
    code, names = json.loads(done.stderr.splitlines()[-1])
    return code, done.stdout, done.stderr, set(names)


@pytest.mark.parametrize(
    ("argv", "code"),
    [(("--help",), 0), (("plugins", "list"), 0), (("checks",), 0), (("plugins", "lsit"), 2)],
    ids=str,
)
def test_nothing_heavy_is_imported(crowded, argv, code):
    got, out, err, names = run(crowded, *argv)
    assert got == code, err
    assert names.isdisjoint(HEAVY | NEVER)
    if argv in {("plugins", "list"), ("checks",)}:
        assert "crowd49" in out


def test_a_mistyped_command_imports_no_plugin(crowded):
    code, _, err, names = run(crowded, "chekcs")
    assert code == 2
    assert "Did you mean checks?" in err
    assert not [name for name in names if name.startswith("crowd")]
