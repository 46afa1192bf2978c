"""Tokenizers from folders, good and bad."""

from __future__ import annotations

import contextlib
import json

import pytest

from gradian_core.audit.collect_tokenizer import collect_tokenizer, has_tokenizer
from gradian_core.audit.samples import tokenizer
from gradian_core.errors import InputError


@pytest.fixture
def folder(tmp_path):
    tokenizer(model_max_length=2048).tokenizer.save_pretrained(tmp_path / "tok")
    return tmp_path / "tok"


def test_a_folder(folder):
    assert has_tokenizer(folder)
    facts = collect_tokenizer(str(folder))
    assert facts.name == str(folder)
    assert facts.eos == ("<|im_end|>", 257)
    assert facts.model_max_length == 2048
    assert facts.generation_eos == frozenset()


@pytest.mark.parametrize(
    ("body", "ids"),
    [
        ('{"eos_token_id": [7, 8]}', {7, 8}),
        ('{"eos_token_id": 7}', {7}),
        ('{"eos_token_id": [true, "x", null]}', set()),
        ("[]", set()),
        ("{", set()),
        ("[" * 100_000, set()),
    ],
)
def test_the_ends_of_generation_config(folder, body, ids):
    (folder / "generation_config.json").write_text(body)
    facts = collect_tokenizer(str(folder))
    assert facts.generation_eos == ids
    assert facts.end_tokens == {257, *ids}


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "~/nowhere", "a/b/c"])
def test_a_missing_folder_is_not_looked_for_on_the_hub(name):
    with pytest.raises(InputError, match="no file or folder"):
        collect_tokenizer(name)


def test_a_damaged_folder(tmp_path):
    (tmp_path / "tokenizer_config.json").write_text("{")
    (tmp_path / "tokenizer.json").write_text("\x1b[31m")
    with pytest.raises(InputError, match="cannot be loaded") as caught:
        collect_tokenizer(str(tmp_path))
    assert "\x1b" not in str(caught.value)
    assert "--tokenizer" in (caught.value.hint or "")


def test_code_in_a_folder_is_not_run(folder, tmp_path):
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config["auto_map"] = {"AutoTokenizer": ["evil.Evil", None]}
    config["tokenizer_class"] = "Evil"
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    with contextlib.suppress(InputError):
        collect_tokenizer(str(folder))
    assert not (tmp_path / "ran").exists()


def test_an_empty_folder_has_none(tmp_path):
    assert not has_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{}")
    assert not has_tokenizer(tmp_path)
