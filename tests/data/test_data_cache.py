"""The token cache: what makes an id, what is read back, and what damage does."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from gradian_core.data import cache
from gradian_core.data.cache import encode_cached, tokenizer_fingerprint
from gradian_core.data.encode import encode
from gradian_core.data.files import dataset_from_rows

CHAT = "{% for m in messages %}{{ m.content }}</s>{% endfor %}"
ROWS = [{"prompt": f"question {i}", "completion": f"answer {i}"} for i in range(60)]
ROWS.append({"messages": [{"role": "user", "content": "no answer"}]})


@pytest.fixture(scope="module")
def tokenizer(build_tokenizer):
    return build_tokenizer(CHAT)


@pytest.fixture(scope="module")
def dataset():
    return dataset_from_rows(ROWS)


def cached(dataset, tokenizer, folder, **options):
    options = {"max_seq_length": 20, "supervise": "all", **options}
    return encode_cached(dataset, tokenizer, cache_dir=folder, **options)


def entries(folder):
    return sorted((folder / "tokens").iterdir())


def assert_same(one, two):
    assert one.tokens.ids == two.tokens.ids
    for name in cache._DTYPES:
        if name != "ids":
            a, b = getattr(one.tokens, name), getattr(two.tokens, name)
            assert a.dtype == b.dtype
            assert np.array_equal(a, b)
    assert one.problems == two.problems
    assert [n for n in one.notes if "cache" not in n] == [n for n in two.notes if "cache" not in n]


def test_second_time_from_disk(dataset, tokenizer, tmp_path, monkeypatch):
    first = cached(dataset, tokenizer, tmp_path)
    assert_same(first, encode(dataset, tokenizer, max_seq_length=20))
    monkeypatch.setattr(cache, "encode", lambda *_, **__: pytest.fail("encoded again"))
    second = cached(dataset, tokenizer, tmp_path)
    assert_same(first, second)
    assert isinstance(second.tokens.input_ids, np.memmap)
    assert not second.tokens.input_ids.flags.writeable
    assert second.problems == {60: "there is no assistant turn"}
    assert len(entries(tmp_path)) == 1


def test_whatever_changes_tokens_changes_the_id(dataset, tokenizer, build_tokenizer, tmp_path):
    cached(dataset, tokenizer, tmp_path)
    cached(dataset, tokenizer, tmp_path, max_seq_length=21)
    cached(dataset, tokenizer, tmp_path, supervise="last")
    cached(dataset_from_rows(ROWS[1:]), tokenizer, tmp_path)
    cached(dataset, build_tokenizer(CHAT + " "), tmp_path)
    cached(dataset, build_tokenizer(CHAT, added=("<s>", "</s>", "<x>")), tmp_path)
    cached(dataset, build_tokenizer(CHAT, adds_bos=True), tmp_path)
    assert len(entries(tmp_path)) == 7
    cached(dataset, build_tokenizer(CHAT), tmp_path)
    assert len(entries(tmp_path)) == 7


def test_fingerprint_ignores_what_calls_leave_behind(build_tokenizer):
    tokenizer = build_tokenizer(CHAT)
    before = tokenizer_fingerprint(tokenizer)
    tokenizer.pad_token = tokenizer.eos_token
    padded = tokenizer_fingerprint(tokenizer)
    tokenizer(["a", "b c"], padding=True, truncation=True, max_length=3)
    assert tokenizer_fingerprint(tokenizer) == padded
    assert before != padded  # special tokens are part of it: templates read them
    assert tokenizer_fingerprint(build_tokenizer(CHAT)) == before


def flip(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def edit(path, **changes):
    """Change a file, with its checksum, as a wrong writer would."""
    meta = json.loads(path.read_text()) | changes
    del meta["checksum"]
    path.write_text(json.dumps(meta | {"checksum": cache._checksum(meta)}))


def swap(folder, name, array):
    """Put another array there, with its checksum, as a wrong writer would."""
    np.save(folder / f"{name}.npy", array)
    meta = folder / "tokens.json"
    sums = json.loads(meta.read_text())["sha256"] | {name: cache._digest(folder / f"{name}.npy")}
    edit(meta, sha256=sums)


DAMAGE = {
    "a flipped bit": lambda folder: flip(folder / "input_ids.npy"),
    "a file cut short": lambda folder: os.truncate(folder / "supervised.npy", 200),
    "a missing file": lambda folder: (folder / "offsets.npy").unlink(),
    "no meta": lambda folder: (folder / "tokens.json").unlink(),
    "meta with another digit": lambda folder: (folder / "tokens.json").write_text(
        (folder / "tokens.json").read_text().replace('"max_seq_length": 20', '"max_seq_length": 21')
    ),
    "meta is no object": lambda folder: (folder / "tokens.json").write_text("[]"),
    "a file for the folder": lambda folder: (shutil.rmtree(folder), folder.write_text("")),
    "a folder for a file": lambda folder: (
        (folder / "rows.npy").unlink(),
        (folder / "rows.npy").mkdir(),
    ),
    "meta is no JSON": lambda folder: (folder / "tokens.json").write_text("{"),
    "meta of another": lambda folder: edit(folder / "tokens.json", key={}),
    "meta without sums": lambda folder: edit(folder / "tokens.json", sha256={}),
    "pickled": lambda folder: swap(folder, "rows", np.array([{}], object)),
    "wrong type": lambda folder: swap(folder, "rows", np.zeros(61, np.int32)),
    "wrong rank": lambda folder: swap(folder, "rows", np.zeros((61, 1), np.int64)),
    "wrong length": lambda folder: swap(folder, "rows", np.zeros(60, np.int64)),
    "no offsets": lambda folder: swap(folder, "offsets", np.zeros(0, np.int64)),
    "wrong offsets": lambda folder: swap(folder, "offsets", np.zeros(62, np.int64)),
    "wrong kinds": lambda folder: swap(folder, "supervision", np.full(61, 9, np.uint8)),
    "wrong lengths": lambda folder: swap(folder, "full_lengths", np.zeros(61, np.int32)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_mended_and_noted(damage, dataset, tokenizer, tmp_path):
    first = encode(dataset, tokenizer, max_seq_length=20)
    cached(dataset, tokenizer, tmp_path)
    (folder,) = entries(tmp_path)
    DAMAGE[damage](folder)
    mended = cached(dataset, tokenizer, tmp_path)
    assert_same(first, mended)
    assert "damaged" in mended.notes[-1]
    # notes go into the report, where no path of a machine belongs
    assert str(tmp_path) not in mended.notes[-1]
    again = cached(dataset, tokenizer, tmp_path)
    assert_same(first, again)
    assert not any("damaged" in note for note in again.notes)
    assert entries(tmp_path) == [folder]


def test_a_folder_that_cannot_be_written_is_noted(dataset, tokenizer, tmp_path):
    (tmp_path / "tokens").write_text("in the way")
    encoded = cached(dataset, tokenizer, tmp_path)
    assert_same(encoded, encode(dataset, tokenizer, max_seq_length=20))
    assert encoded.notes[-1].startswith("The tokens could not be cached")
    assert str(tmp_path) not in encoded.notes[-1]


def test_a_killed_writer_leaves_no_entry(dataset, tokenizer, tmp_path, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cache, "_digest", fail)
    with pytest.raises(KeyboardInterrupt):
        cached(dataset, tokenizer, tmp_path)
    assert entries(tmp_path) == []


def test_two_writers_at_once(dataset, tokenizer, tmp_path, monkeypatch):
    original = Path.replace

    def too_late(self, target):
        shutil.copytree(self, target)  # the other process was faster
        return original(self, target)

    monkeypatch.setattr(Path, "replace", too_late)
    encoded = cached(dataset, tokenizer, tmp_path)
    assert_same(encoded, encode(dataset, tokenizer, max_seq_length=20))
    assert isinstance(encoded.tokens.input_ids, np.memmap)
    assert not any("cached" in note for note in encoded.notes)
    assert len(entries(tmp_path)) == 1


def test_tiny_data_sets(tokenizer, tmp_path):
    dataset = dataset_from_rows([{"text": ""}])
    for _ in range(2):
        assert len(cached(dataset, tokenizer, tmp_path).tokens.input_ids) == 0
