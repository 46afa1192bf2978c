"""Installed packages that are broken on purpose take nothing else down."""

import json

import pytest

pytestmark = pytest.mark.wheels

ENGINE = """
@hookimpl
def gradian_engines():
    yield EngineSpec(name="{}", summary="s", factory="m:C")
"""
LAZY = """
@hookimpl
def gradian_sinks():
    yield SinkSpec(name="x", summary="s", factory="m:C")
    raise RuntimeError("later")
"""

BROKEN = {
    "import-error": ("import surely_not_installed", "failed", "ModuleNotFoundError"),
    "misspelt-hook": (
        "@hookimpl\ndef gradian_engine(): return ()",
        "failed",
        "Did you mean gradian_engines?",
    ),
    "wrong-signature": (
        "@hookimpl\ndef gradian_checks(config): return ()",
        "failed",
        "wrong signature",
    ),
    "lazy": (LAZY, "failed", "later"),
    "exits": ("raise SystemExit(7)", "failed", "SystemExit"),
    "loud": ("print('LOUD'); raise ValueError('\\x1b[31mred')", "failed", "red"),
    "clash-one": (ENGINE.format("same"), "clash", "clash-two"),
    "clash-two": (ENGINE.format("same"), "clash", "clash-one"),
    "thief": (ENGINE.format("datainf"), "clash", "the built-in one is kept"),
    "lacking": (
        ENGINE.format("far").replace('"m:C"', '"m:C", requires=("surely_missing",)'),
        "unavailable",
        "surely_missing",
    ),
}


@pytest.fixture(scope="module")
def spoiled(alone, wheels, tmp_path_factory):
    out = tmp_path_factory.mktemp("broken")
    made = []
    for name, (source, _, _) in BROKEN.items():
        module = f"broken_{name.replace('-', '_')}"
        points = f"[gradian.v1]\n{name} = {module}\n"
        made.append(wheels.write(out, name, points, {module: source}))
    good = {"future_module": ENGINE.format("tomorrow")}
    made.append(wheels.write(out, "future", "[gradian.v9]\nfuture = future_module\n", good))
    hostile = "[gradian.v1]\n../x;rm\x1b[2J = hostile_module\nokay = hostile module!\n"
    made.append(wheels.write(out, "hostile-names", hostile, {"hostile_module": ""}))
    made.append(wheels.write(out, "no-ini", "[gradian.v1\nnot an ini file", {}))
    alone.install(*made)
    return alone


def plugins(environment, **variables):
    done = environment.run("gradian", "plugins", "list", "--json", **variables)
    assert done.returncode == 0, done.stderr
    return done, json.loads(done.stdout)["plugins"]


def test_each_has_its_state_and_reason(spoiled):
    _, found = plugins(spoiled)
    by_name = {p["name"]: p for p in found}
    for name, (_, state, reason) in BROKEN.items():
        assert by_name[name]["state"] == state
        assert by_name[name]["distribution"] == name
        assert reason in by_name[name]["reason"]
    assert by_name["future"]["state"] == "incompatible"
    assert "gradian.v9" in by_name["future"]["reason"]
    assert {p["state"] for p in found if p["distribution"] == "hostile-names"} == {"failed"}
    assert all(p["reason"].isprintable() and p["name"].isprintable() for p in found)
    built_in = [p for p in found if p["distribution"] == "gradian-ml"]
    assert len(built_in) > 5
    assert {p["state"] for p in built_in} == {"ok"}


def test_what_they_print_stays_off_stdout(spoiled):
    done, _ = plugins(spoiled)
    assert "LOUD" in done.stderr


@pytest.mark.parametrize(
    "command", [("--help",), ("plugins", "list", "-v"), ("checks",), ("doctor",), ("version",)]
)
def test_no_command_falls(spoiled, command):
    done = spoiled.run("gradian", *command)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stdout


def test_diagnose_works_and_names_what_was_lost(spoiled, tmp_path):
    (tmp_path / "t.jsonl").write_text('{"prompt": "a", "completion": "b"}\n' * 3)
    done = spoiled.run(
        "gradian", "diagnose", "-d", "t.jsonl", "-q", "--format", "json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert "data.duplicates" in {finding["id"] for finding in report["findings"]}
    assert "import-error" in json.dumps(report["notes"])


def test_blocked_ones_are_not_even_imported(spoiled):
    blocked = "loud,clash_one,import-error"
    done, found = plugins(spoiled, GRADIAN_BLOCK=blocked)
    states = {p["name"]: p["state"] for p in found}
    assert states["loud"] == states["clash-one"] == states["import-error"] == "blocked"
    assert states["clash-two"] == "ok"
    assert "LOUD" not in done.stderr


def test_verify_says_what_is_broken(spoiled):
    for name in ("import-error", "future", "clash-one"):
        done = spoiled.run("gradian", "plugins", "verify", name)
        assert done.returncode == 1, done.stderr
        assert f"BROKEN  plugin:{name}:loads" in done.stdout


def test_strict_raises(spoiled):
    done = spoiled.run("gradian", "plugins", "list", "--debug", GRADIAN_STRICT="1")
    assert done.returncode == 3
    assert "Traceback" in done.stderr
