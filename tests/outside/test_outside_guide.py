"""The guide for authors of checks, followed to the letter in a fresh environment."""

import re
import shlex

import pytest

pytestmark = pytest.mark.wheels

STEP = re.compile(
    r"(?:<!-- (?P<mark>file|output)(?:: (?P<about>\S+))? -->\n)?"
    r"```(?P<language>\w+)\n(?P<text>.*?)```",
    re.DOTALL,
)


def test_followed_to_the_letter(outside, wheels, examples, tmp_path, tmp_path_factory):
    page = (examples.parent / "docs" / "write-a-check.md").read_text(encoding="utf-8")
    printed, ran = "", []
    for step in STEP.finditer(page):
        if step["mark"] == "file":
            path = tmp_path / step["about"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step["text"], encoding="utf-8")
        elif step["mark"] == "output":
            assert step["text"].strip() in printed
        elif step["language"] == "bash":
            for line in step["text"].splitlines():
                words = shlex.split(line)
                ran.append(words[0])
                if words[:3] == ["pip", "install", "-e"]:
                    # From a wheel: an editable install would ask the network for hatchling.
                    project = tmp_path / words[3]
                    outside.install(wheels.build(project, tmp_path_factory.mktemp("guide")))
                    continue
                done = outside.run(*words, cwd=tmp_path)
                assert done.returncode == 0, done.stdout + done.stderr
                printed = done.stdout
    assert ran == ["gradian", "pip", "gradian", "gradian"]
    quiet = ("-q", "-p", "no:cacheprovider", "--import-mode=importlib")
    done = outside.run("python", "-B", "-m", "pytest", *quiet, cwd=tmp_path / "gradian-shouting")
    assert done.returncode == 0, done.stdout
