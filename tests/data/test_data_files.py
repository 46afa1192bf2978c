"""Files as they come: good ones, odd ones, broken ones; memory; real ones where they are."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_core.data.example import Example
from gradian_core.data.files import Dataset, dataset_from_rows, load_dataset
from gradian_core.errors import InputError, MissingExtraError

FILES = Path(__file__).parent / "files"
ROWS = [{"prompt": f"q{i} é", "completion": "a"} for i in range(3)]
SAME = [(("user", f"q{i} é"), ("assistant", "a")) for i in range(3)]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def lines(rows, ascii_only=False):
    return "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows)


def content(dataset):
    return [tuple((turn.role, turn.content) for turn in example.turns) for example in dataset]


FORMS = {
    "lines": ("t.jsonl", lines(ROWS), [1, 2, 3]),
    "no newline at the end": ("t.jsonl", lines(ROWS).rstrip("\n"), [1, 2, 3]),
    "ndjson": ("t.ndjson", lines(ROWS), [1, 2, 3]),
    "upper case": ("t.JSONL", lines(ROWS), [1, 2, 3]),
    "windows": ("t.jsonl", b"\xef\xbb\xbf" + lines(ROWS).replace("\n", "\r\n").encode(), [1, 2, 3]),
    "blank lines": ("t.jsonl", "\n  \n" + lines(ROWS).replace("\n", "\n\n \t"), [3, 5, 7]),
    "indented lines": ("t.jsonl", lines(ROWS).replace("{", "  {").replace("}", "} "), [1, 2, 3]),
    "array": ("t.json", json.dumps(ROWS, ensure_ascii=False), [1, 1, 1]),
    "pretty array": ("t.json", json.dumps(ROWS, ensure_ascii=False, indent=1), [2, 6, 10]),
    "array with a mark": ("t.json", b"\xef\xbb\xbf" + json.dumps(ROWS).encode(), [1, 1, 1]),
    "data": ("t.json", json.dumps({"data": ROWS}, indent=1), [3, 7, 11]),
    "train": ("t.json", json.dumps({"v": [1], "train": ROWS, "test": []}), [1, 1, 1]),
    "lines called json": ("t.json", "\n" + lines(ROWS), [2, 3, 4]),
    "array called jsonl": ("t.jsonl", json.dumps(ROWS, indent=0), [2, 6, 10]),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form, tmp_path):
    name, text, places = FORMS[form]
    path = write(tmp_path / name, text)
    dataset = load_dataset(path)
    assert content(dataset) == SAME
    assert content(dataset[i] for i in range(-3, 0)) == SAME
    assert content(dataset[::2]) == SAME[::2]
    assert [dataset.line(i) for i in range(3)] == places
    assert dataset.where(1) == f"{path}:{places[1]}"
    assert [example.row for example in dataset] == [0, 1, 2]
    assert len(dataset) == 3
    assert dataset.path == path
    with pytest.raises(IndexError):
        dataset[3]
    assert dataset.fingerprint == dataset_from_rows(ROWS).fingerprint


class TestPublishedFiles:
    """Extracts of published files; see files/SOURCES.md."""

    def test_content_in_parts_with_a_loss_weight(self):
        dataset = load_dataset(FILES / "content-parts.jsonl")
        assert [example.turns[0].content for example in dataset] == ["hi", "hello"]
        assert dataset[1].answer.startswith("Hello! I am {{name}}")
        assert dataset.notes == ()

    def test_one_conversation_with_an_empty_answer(self):
        (example,) = load_dataset(FILES / "sharegpt-empty-turn.json")
        assert [turn.role for turn in example.turns] == ["user", "assistant"] * 2
        assert example.turns[1].content == ""


@pytest.mark.parametrize(
    ("form", "note"),
    [
        ("train", "Rows were read from 'train' of t.json; its 'v', 'test' was not read."),
        ("data", "Rows were read from 'data' of t.json."),
        ("lines called json", "t.json holds JSON Lines although it is called .json."),
        ("array called jsonl", "t.jsonl is one JSON array, not JSON Lines."),
    ],
)
def test_guesses_are_noted(form, note, tmp_path):
    name, text, _ = FORMS[form]
    assert load_dataset(write(tmp_path / name, text)).notes == (note,)


def test_one_row_as_json(tmp_path):
    row = {"conversations": [{"from": "human", "value": "q"}], "data": [1]}
    dataset = load_dataset(write(tmp_path / "t.json", json.dumps(row, indent=1)))
    assert content(dataset) == [(("user", "q"),)]
    assert dataset.line(0) == 1
    assert dataset.notes == ("Keys that no row shape uses were left unread (rows): 'data' (1).",)


def test_weights_are_noted():
    message = {"role": "assistant", "content": "a"}
    rows = [
        {"messages": [message | {"weight": 0}]},
        {"messages": [message | {"weight": 1}]},
        {"messages": [{"role": "user", "content": "q", "loss_weight": 0.0}, message]},
    ]
    (note,) = dataset_from_rows(rows).notes
    assert note.startswith("1 of 3 rows give an assistant message no weight")


class TestFingerprint:
    def test_content_and_order(self):
        base = dataset_from_rows(ROWS).fingerprint
        assert dataset_from_rows(ROWS[::-1]).fingerprint != base
        assert dataset_from_rows(ROWS[:2]).fingerprint != base
        assert dataset_from_rows([*ROWS[:2], ROWS[2] | {"tools": [{"a": 1}]}]).fingerprint != base
        assert dataset_from_rows([row | {"cluster": 1, "x": 2} for row in ROWS]).fingerprint == base

    def test_borders_between_rows_and_turns_count(self):
        ones = [{"text": "ab"}, {"text": "c"}]
        others = [{"text": "a"}, {"text": "bc"}]
        assert dataset_from_rows(ones).fingerprint != dataset_from_rows(others).fingerprint
        text = dataset_from_rows([{"text": "usera"}]).fingerprint
        turn = dataset_from_rows([{"messages": [{"role": "user", "content": "a"}]}]).fingerprint
        assert text != turn


BAD = [
    ("t.jsonl", '{"text": "a"}\n\n{"text": }\n', r"t\.jsonl:3: not JSON at column 10"),
    ("t.jsonl", '{"text": "a"}\n["x"]\n', r"t\.jsonl:2: the row is a list; an object"),
    ("t.jsonl", '{"text": "a"} {"text": "b"}\n', r"t\.jsonl:1: not JSON at column 15: extra data"),
    ("t.jsonl", '{"text": "a"}\n"x"\n', r"t\.jsonl:2: the row is a string"),
    ("t.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n', r"t\.jsonl:2: byte 24 \(0xff\) is not UTF-8"),
    ("t.jsonl", '{"text": "a", "text": "b"}\n', r"t\.jsonl:1: the key 'text' stands twice"),
    ("t.jsonl", '{"text": "a"}\n{"text": "\\ud83d"}\n', r"t\.jsonl:2: 'text' holds the lone surr"),
    ("t.jsonl", '{"text": "a", "n": ' + "1" * 5000 + "}\n", r"t\.jsonl:1: Exceeds the limit"),
    ("t.jsonl", '{"text": ' + "[" * 200_000 + "\n", r"t\.jsonl:1: (nested too deeply|not JSON)"),
    ("t.jsonl", '{"text": "a"}\n{"txt": "b"}\n', r"t\.jsonl:2: the row fits no known shape"),
    ("t.jsonl", '{\n "text": "a"\n}\n', r"t\.jsonl:1: not JSON.*one a line"),
    ("t.jsonl", "", r"t\.jsonl holds no rows"),
    ("t.jsonl", "\ufeff\n \n", r"t\.jsonl holds no rows"),
    ("t.jsonl", '{"text": "a"}\n'.encode("utf-16"), "UTF-16"),
    ("t.jsonl", "version https://git-lfs.github.com/spec/v1\noid", "Git LFS pointer.*git lfs pull"),
    ("t.json", "", r"t\.json holds no rows"),
    ("t.json", "[]", r"t\.json holds no rows"),
    ("t.json", '{"data": []}', r"t\.json holds no rows"),
    ("t.json", "3", r"t\.json holds a number; a list of rows"),
    ("t.json", '[{"text": "a"},\n 3]', r"t\.json:2: the row is a number"),
    (
        "t.json",
        '[{"text": "a"}\n {"text": "b"}]',
        r"t\.json:2: not JSON at column 2: expecting ','",
    ),
    ("t.json", '[{"text": "a"},\n', r"t\.json:2: not JSON"),
    ("t.json", '[{"text": "a"}] x', r"t\.json:1: not JSON at column 17: extra data"),
    ("t.json", '[{"text": "a"},\n{"text": "b", "text": "c"}]', "'text' stands twice"),
    ("t.json", b'[{"text": "\xff"}]', r"t\.json: byte 11 \(0xff\) is not UTF-8"),
    ("t.json", '{"a":\n' + "[" * 200_000, r"t\.json:\d+: (nested too deeply|not JSON)"),
    ("t.json", '{"messages": [\n', r"t\.json:2: not JSON"),
    ("t.csv", "text\na\n", r"t\.csv: \.csv files are not read\. Read are \.jsonl"),
    ("t.parquet", "PAR1", r"\.parquet files are not read"),
    ("rows", "{}", "nameless files are not read"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD)
def test_bad_files(name, text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        load_dataset(write(tmp_path / name, text))


@given(st.binary(max_size=60), st.sampled_from(["t.jsonl", "t.json"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory, data, name):
    path = write(tmp_path_factory.getbasetemp() / name, data)
    try:
        examples = list(load_dataset(path))
    except InputError as error:
        examples = [str(error)]
        refused = name in examples[0]
    else:
        refused = False
    assert refused or all(isinstance(example, Example) for example in examples)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["text", "cluster", "x"]), st.text(max_size=5) | st.none()
        ).filter(lambda row: row.get("text") is not None),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
    st.sampled_from([None, 0, 2]),
)
def test_arrays_and_lines_give_the_same(tmp_path_factory, rows, ascii_only, indent):
    folder = tmp_path_factory.getbasetemp()
    text = json.dumps(rows, ensure_ascii=ascii_only, indent=indent)
    array = load_dataset(write(folder / "a.json", text))
    flat = load_dataset(write(folder / "a.jsonl", lines(rows, ascii_only)))
    assert list(array) == list(flat) == list(dataset_from_rows(rows))
    assert [array[i] for i in range(len(rows))] == list(flat)
    assert [example.text for example in array] == [row["text"] for row in rows]
    assert array.fingerprint == flat.fingerprint


class TestMissing:
    def test_similar_names(self, tmp_path):
        write(tmp_path / "train.jsonl", lines(ROWS))
        with pytest.raises(
            InputError, match=r"no file .*trian\.jsonl\. Did you mean train\.jsonl\?"
        ):
            load_dataset(tmp_path / "trian.jsonl")

    def test_folder(self, tmp_path):
        with pytest.raises(InputError, match=r"no folder .*nowhere \(looking for t\.jsonl\)"):
            load_dataset(tmp_path / "nowhere" / "t.jsonl")

    def test_hub_id(self):
        with pytest.raises(InputError, match=r"hub are not resolved\..*save_to_disk\('alpaca'\)"):
            load_dataset("tatsu-lab/alpaca")

    def test_folder_of_files(self, tmp_path):
        write(tmp_path / "train.jsonl", lines(ROWS))
        with pytest.raises(InputError, match=r"not one that save_to_disk wrote.*train\.jsonl"):
            load_dataset(tmp_path)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are a POSIX thing")
    def test_pipe(self, tmp_path):
        os.mkfifo(tmp_path / "t.jsonl")
        with pytest.raises(InputError, match="not a regular file"):
            load_dataset(tmp_path / "t.jsonl")


def test_a_file_that_changes_is_refused(tmp_path):
    path = write(tmp_path / "t.jsonl", lines(ROWS))
    dataset = load_dataset(path)
    write(path, lines(ROWS[:2]))
    with pytest.raises(InputError, match="changed while it was being read"):
        dataset[0]


def test_rows_from_memory():
    dataset = dataset_from_rows((row for row in ROWS), source="mine")
    assert isinstance(dataset, Dataset)
    assert (dataset.path, dataset.line(0), dataset.where(2)) == (None, None, "mine[2]")
    with pytest.raises(InputError, match=r"mine\[1\] is a string; a mapping"):
        dataset_from_rows([ROWS[0], "x"], source="mine")
    with pytest.raises(InputError, match=r"rows\[0\]: the row fits no known shape"):
        dataset_from_rows([{}])
    with pytest.raises(InputError, match="The data set holds no rows"):
        dataset_from_rows([])


def test_memory_does_not_grow_with_the_text(tmp_path):
    peaks = {}
    for size in (10, 10_000):
        row = {"text": "x" * size}
        path = write(tmp_path / f"{size}.jsonl", lines([row] * 500))
        tracemalloc.start()
        dataset = load_dataset(path)
        for _ in dataset:
            pass
        peaks[size] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[10_000] - peaks[10] < 500_000  # the text itself is 5 MB


class TestSavedFolders:
    """The folders were written by *datasets*; see files/SOURCES.md."""

    def test_without_pyarrow(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
        with pytest.raises(MissingExtraError, match=r"gradian-ml\[data\]"):
            load_dataset(FILES / "saved")

    def test_rows(self):
        pytest.importorskip("pyarrow")
        dataset = load_dataset(FILES / "saved")
        assert content(dataset) == SAME
        assert content([dataset[1], dataset[-1]]) == [SAME[1], SAME[2]]
        assert dataset.fingerprint == dataset_from_rows(ROWS).fingerprint
        assert dataset.where(1) == f"{FILES / 'saved'}[1]"
        assert dataset.line(1) is None

    def test_selection_beside_the_rows(self, tmp_path):
        pyarrow = pytest.importorskip("pyarrow")
        for name, column in (("rows", {"text": ["a", "b", "c"]}), ("indices", {"indices": [2, 0]})):
            table = pyarrow.table(column)
            with pyarrow.ipc.new_stream(str(tmp_path / f"{name}.arrow"), table.schema) as stream:
                stream.write_table(table)
        state = {
            "_data_files": [{"filename": "rows.arrow"}],
            "_indices_data_files": [{"filename": "indices.arrow"}],
        }
        write(tmp_path / "state.json", json.dumps(state))
        assert [example.text for example in load_dataset(tmp_path)] == ["c", "a"]

    def test_splits(self):
        pytest.importorskip("pyarrow")
        dataset = load_dataset(FILES / "splits")
        assert content(dataset) == SAME
        assert dataset.notes == ("splits holds the splits train, test; 'train' was read.",)

    def test_no_train_split(self, tmp_path):
        write(tmp_path / "dataset_dict.json", '{"splits": ["a", "b"]}')
        with pytest.raises(InputError, match="holds the splits a, b, and none is 'train'"):
            load_dataset(tmp_path)

    @pytest.mark.parametrize(
        ("state", "message"),
        [
            ("{}", "names no data files"),
            ("[]", "holds no object"),
            ("{", "is not JSON"),
            ('{"_data_files": [{"filename": "../../etc/passwd"}]}', "passwd cannot be read"),
            ('{"_data_files": [{"filename": "lfs.arrow"}]}', "lfs.arrow cannot be read.*git lfs"),
        ],
    )
    def test_damage(self, state, message, tmp_path):
        pytest.importorskip("pyarrow")
        write(tmp_path / "state.json", state)
        write(tmp_path / "lfs.arrow", "version https://git-lfs.github.com/spec/v1\n")
        with pytest.raises(InputError, match=message):
            load_dataset(tmp_path)
