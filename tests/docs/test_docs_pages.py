"""What holds for every page: links, code that parses, commands that exist."""

import ast
import contextlib
import json
import re
import tomllib

import pytest
from cyclopts import MissingArgumentError

from gradian_core.cli.app import build_app
from gradian_core.config.load import load_config

# Section train is described before the command that reads it exists.
_ANNOUNCED = [["train"]]


def test_relative_links_resolve(page):
    for link in page.links:
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.path.parent / name).resolve() if name else page.path
        assert target.exists(), link
        if anchor:
            assert anchor in type(page)(target).anchors, link


def parse(words):
    words = [word for word in words if word != "--debug"]
    build_app().parse_args(words, exit_on_error=False, print_error=False)


def test_commands_parse(page):
    for words in page.commands:
        parse(words)
    for words in page.mentions:
        if words not in _ANNOUNCED:
            with contextlib.suppress(MissingArgumentError):
                parse(words)


def test_code_parses(page, tmp_path):
    for block in page.blocks:
        if block.language == "python":
            ast.parse(block.text)
        elif block.language == "toml":
            assert tomllib.loads(block.text)
        elif block.language == "json":
            assert json.loads(block.text)
        elif block.language == "yaml":
            (tmp_path / "gradian.yaml").write_text(block.text)
            load_config(tmp_path / "gradian.yaml")


def test_a_wrong_command_is_found(docs):
    words = next(words for words in docs("cli").commands if words[0] == "attribute")
    with pytest.raises(Exception, match="--engin"):
        parse([*words, "--engin", "x"])
