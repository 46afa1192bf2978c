"""What must not be in any file of the project."""

import re
import subprocess

import pytest

# Spelt in two parts, so that this file is no hit of its own.
_MARKS = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
_MACHINE = re.compile(r"/(?:work|root|home/\w+|Users/\w+)" + r"/")
_TEXT = {".cfg", ".ini", ".jinja", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}


@pytest.fixture(scope="module")
def sources(root):
    try:
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=root,
            capture_output=True,
            check=True,
        ).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git checkout")
    paths = [root / name for name in listed.split("\0") if name]
    return {p: p.read_text("utf-8") for p in paths if p.suffix in _TEXT and p.is_file()}


def test_no_unresolved_marks(sources):
    hits = [str(path) for path, text in sources.items() if _MARKS.search(text)]
    assert hits == []


def test_no_paths_of_a_machine(sources):
    allowed = {"tests/cli/test_cli_failures.py"}  # a made-up path in an error
    hits = [
        found.group() + " in " + str(path)
        for path, text in sources.items()
        if not any(path.as_posix().endswith(name) for name in allowed)
        and (found := _MACHINE.search(text))
    ]
    assert hits == []
