"""YAML configs as their tools see them, with lines, and bounded."""

from __future__ import annotations

import time

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gradian_core.errors import InputError
from gradian_plugins.runs._yaml import parse_yaml, read_yaml

PLAIN = """\
# comment
base_model: org/model   # trailing
learning_rate: 2e-4
warmup_steps:
bf16: auto
on_start: yes
datasets:
  - path: a.jsonl
    type: alpaca
  - path: b.jsonl
special_tokens: {pad_token: "<|x|>"}
date: 2024-05-01
octal: 017
"""


def test_values_are_what_the_tool_reads_and_lines_are_known():
    config = parse_yaml(PLAIN, "c.yml")
    expected = yaml.safe_load(PLAIN) | {"date": "2024-05-01"}
    assert config.values == expected
    assert config.where("learning_rate") == "c.yml:3"
    assert config.where("datasets", 1, "path") == "c.yml:10"
    assert config.where("special_tokens", "pad_token") == "c.yml:11"
    assert config.where("absent") == "c.yml"


def test_lines_count_from_where_the_text_stands():
    config = parse_yaml("a: 1\nb: 2\n", "README.md", first_line=40)
    assert config.where("b") == "README.md:41"


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_files_of_windows(tmp_path, ends, mark):
    path = tmp_path / "c.yaml"
    path.write_bytes(mark + PLAIN.replace("\n", ends).encode())
    config = read_yaml(path)
    assert config.values["base_model"] == "org/model"
    assert config.where("octal") == "c.yaml:13"


def test_anchors_and_merges():
    config = parse_yaml("base: &b {lr: 1, seed: 2}\nrun:\n  <<: *b\n  lr: 3\nagain: *b\n", "c")
    assert config.values["run"] == {"lr": 3, "seed": 2}
    assert config.values["again"] == {"lr": 1, "seed": 2}
    assert parse_yaml("'<<': 1\n", "c").values == {"<<": 1}


def test_what_is_passed_over_is_said():
    config = parse_yaml("a: 1\nb: !!python/object/apply:os.system [ls]\na: 2\n---\nc: 3\n", "c")
    assert config.values == {"a": 2, "b": ["ls"]}
    assert [note.split(":")[0] for note in config.notes] == [
        "c, line 2",
        "c, line 3",
        "c, only the first of several documents was read.",
    ]


BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(12)
)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (BOMB, "aliases included"),
        ("[" * 100_000, "exceeded maximum nesting|nested too deeply|not valid"),
        ("a: " * 1 + "{b: " * 1000, "nested too deeply"),
        ("- " * 5000 + "x", "nested too deeply|not valid"),
        ("a: [", "not valid YAML"),
        ("\t", "not valid YAML"),
        ("- 1\n- 2\n", "no 'key: value'"),
        ("just text", "no 'key: value'"),
        ("a: *zz", "stands for nothing"),
        ("? [1]\n: 2\n", "key must be a word"),
        ("\n".join(f"k{i}: {i}" for i in range(40_000)), "more than 50,000"),
        ("a: \x00", "not valid YAML"),
    ],
)
def test_hostile_and_damaged_files(text, word):
    begun = time.process_time()
    with pytest.raises(InputError, match=word) as caught:
        parse_yaml(text, "c.yml")
    assert "c.yml" in str(caught.value)
    assert time.process_time() - begun < 5


def test_a_large_file(tmp_path):
    path = tmp_path / "c.yml"
    path.write_text("# " + "x" * (1 << 20))
    with pytest.raises(InputError, match="larger than"):
        read_yaml(path)


leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
trees = st.recursive(
    leaves, lambda c: st.lists(c) | st.dictionaries(st.text(max_size=6), c), max_leaves=8
)


@settings(deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=6), trees, max_size=5))
def test_agrees_with_pyyaml(tree):
    text = yaml.safe_dump(tree, allow_unicode=True)
    assert parse_yaml(text, "c").values == yaml.safe_load(text)
