"""Data sets of which some rows cannot be read."""

from __future__ import annotations

import json

import pytest

from gradian_core.data import jsonfile
from gradian_core.data.files import load_dataset
from gradian_core.errors import InputError

GOOD = [json.dumps({"prompt": f"q{i}", "completion": f"a{i}"}).encode() for i in range(4)]
BAD = {
    "cut": b'{"prompt": "q", "compl',
    "no-object": b"[1, 2]",
    "no-shape": b'{"question": "q"}',
    "wrong-type": b'{"prompt": 3, "completion": "a"}',
    "preference": b'{"prompt": "q", "chosen": "a", "rejected": "b"}',
    "latin-1": '{"prompt": "é", "completion": "a"}'.encode("latin-1"),
    "null-bytes": b"\x00\x00\x00",
    "deep": b'{"prompt": ' + b"[" * 100_000,
    "key-twice": b'{"prompt": "q", "prompt": "r", "completion": "a"}',
    "long-number": b'{"prompt": "q", "completion": "a", "n": ' + b"9" * 5000 + b"}",
}


def write(path, lines):
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_the_rest_is_as_if_the_bad_row_were_not_there(tmp_path, bad):
    path = write(tmp_path / "t.jsonl", [*GOOD[:2], bad, *GOOD[2:]])
    with pytest.raises(InputError, match=r"t\.jsonl:3"):
        load_dataset(path)
    found = load_dataset(path, lenient=True)
    clean = load_dataset(write(tmp_path / "clean.jsonl", GOOD))
    assert list(found) == list(clean) == [found[i] for i in range(4)]
    assert found.fingerprint == clean.fingerprint
    assert [found.line(i) for i in range(4)] == [1, 2, 4, 5]
    assert (found.rejected.count, found.rejected.total, found.rejected.lines) == (1, 5, (3,))
    assert found.rejected.reasons[0].startswith("t.jsonl:3: ")
    assert found.notes[0] == "1 of 5 rows of t.jsonl cannot be read and were left out."
    assert clean.rejected.count == 0


def test_only_the_first_few_are_named(tmp_path):
    path = write(tmp_path / "t.jsonl", [*GOOD, *[b"{"] * 300])
    rejected = load_dataset(path, lenient=True).rejected
    assert (rejected.count, rejected.total, rejected.lines) == (300, 304, (5, 6, 7, 8, 9))


@pytest.mark.parametrize(
    ("name", "lines", "words"),
    [
        ("t.jsonl", [b"{"] * 3, r"None of the 3 rows can be read\. .*t\.jsonl:1"),
        ("t.jsonl", [b"{"], r"t\.jsonl:1: not JSON"),
        ("t.json", [b'[{"prompt": "q", "completion": "a"}, {"prompt"]'], "not JSON"),
        ("t.jsonl", [], "holds no rows"),
    ],
)
def test_nothing_left_is_refused(tmp_path, name, lines, words):
    with pytest.raises(InputError, match=words):
        load_dataset(write(tmp_path / name, lines), lenient=True)


def test_rows_of_a_document(tmp_path):
    rows = b"[" + b",\n".join([GOOD[0], BAD["no-shape"], b"7", GOOD[1]]) + b"]"
    found = load_dataset(write(tmp_path / "t.json", [rows]), lenient=True)
    assert [example.row for example in found] == [0, 1]
    assert found.rejected.lines == (2, 3)


def test_rows_of_a_saved_folder(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    folder = tmp_path / "saved"
    folder.mkdir()
    table = pyarrow.Table.from_pylist(
        [{"prompt": "q", "completion": text} for text in ("a", None, "c")]
    )
    with pyarrow.ipc.new_stream(str(folder / "data.arrow"), table.schema) as sink:
        sink.write_table(table)
    (folder / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    with pytest.raises(InputError, match=r"saved\[1\]"):
        load_dataset(folder)
    found = load_dataset(folder, lenient=True)
    assert [example.turns[1].content for example in found] == ["a", "c"]
    assert found.rejected.lines == ()


def test_a_line_longer_than_any_row_is_one_row_and_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonfile, "_LONGEST", 64)
    long = b'{"prompt": "' + b"q" * 500 + b'", "completion": "a"}'
    path = write(tmp_path / "t.jsonl", [GOOD[0], long, b" " * 300, GOOD[1], long])
    with pytest.raises(InputError, match=r"t\.jsonl:2: the row has 0 MiB"):
        load_dataset(path)
    found = load_dataset(path, lenient=True)
    assert [found.line(i) for i in range(len(found))] == [1, 4]
    assert found.rejected.lines == (2, 5)


@pytest.mark.parametrize("size", [62, 63, 64, 65, 66, 127, 128, 129, 130])
def test_rows_around_the_limit_stay_whole(tmp_path, monkeypatch, size):
    monkeypatch.setattr(jsonfile, "_LONGEST", 64)
    row = b'{"prompt": "' + b"q" * (size - 32) + b'", "completion": "a"}'
    assert abs(len(row) - size) <= 1
    for end in (b"\n", b"\r\n", b""):
        path = tmp_path / f"t{len(end)}.jsonl"
        path.write_bytes(GOOD[0] + b"\n" + row + end + (GOOD[1] if end else b""))
        found = load_dataset(path, lenient=True)
        assert found.rejected.count == (len(row) > 64)
        assert len(found) == 1 + bool(end) + (len(row) <= 64)


@pytest.mark.parametrize("target", ["nowhere.jsonl", "link.jsonl"], ids=["dangling", "loop"])
def test_a_link_that_leads_nowhere(tmp_path, target):
    (tmp_path / "link.jsonl").symlink_to(target)
    with pytest.raises(InputError, match="a link that leads nowhere"):
        load_dataset(tmp_path / "link.jsonl")
