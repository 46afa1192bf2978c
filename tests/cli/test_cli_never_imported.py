"""Libraries that patch others when they are imported: core never does it."""

import ast
from pathlib import Path

import gradian_core

NEVER = {"bitsandbytes", "trl", "unsloth", "xformers"}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_core_imports_none_of_them_anywhere():
    sources = sorted(Path(gradian_core.__file__).parent.rglob("*.py"))
    assert len(sources) > 100
    for path in sources:
        assert NEVER.isdisjoint(imported(path)), path
