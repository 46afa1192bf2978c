"""Streams that are closed, broken or full, and terminals of any width."""

import os
import subprocess
import sys

import pytest

from gradian_core.cli import streams

COMMANDS = (["version"], ["plugins", "list"], ["--help"])
CLOSERS = {"stdout": ">&-", "stderr": "2>&-", "both": ">&- 2>&-", "all": "<&- >&- 2>&-"}

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")


def shell(argv, redirect, **environment):
    program = f"import sys; from gradian_core.cli.app import main; sys.exit(main({argv}))"
    return subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {redirect}', sys.executable, program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_closed_streams(argv):
    done = shell(argv, CLOSERS["stdout"])
    assert (done.returncode, done.stderr) == (0, "")
    assert shell(argv, CLOSERS["all"]).returncode == 0


@pytest.mark.parametrize("redirect", CLOSERS.values(), ids=CLOSERS)
def test_an_error_keeps_its_code(redirect):
    assert shell(["nonsense"], redirect).returncode == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux only")  # noqa: PTH110
@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_a_full_disk_under_stdout(argv):
    done = shell(argv, ">/dev/full")
    assert done.returncode == 3
    if "--help" in argv:  # printed by a library, which does not say where
        assert done.stderr.startswith("error: The disk is full.\nhelp: ")
    else:
        words = "error: Standard output cannot be written: No space left on device.\n"
        assert done.stderr == words


def test_a_full_disk_under_stderr():
    assert shell(["nonsense"], "2>/dev/full").returncode == 2


@pytest.mark.parametrize("argv", COMMANDS[1:], ids=" ".join)
@pytest.mark.parametrize("columns", ["1", "0", "100000"])
def test_any_width(argv, columns):
    done = shell(argv, "", COLUMNS=columns)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= streams._WIDEST
    assert sum(len(line.strip()) == 1 for line in lines) < 2
    assert "Traceback" not in done.stderr


def test_a_table_is_not_padded_for_its_longest_cell(gradian):
    lines = gradian("plugins", "list").out.splitlines()
    assert max(map(len, lines)) < 160
    assert all(line == line.rstrip() for line in lines)
    assert any(line.split()[:2] == ["ok", "config"] and "checks" in line for line in lines)
