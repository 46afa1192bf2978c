"""``gradian show-index`` on a manifest."""

import json

import pytest

from gradian_core.cli.manifest import find_index, summary
from gradian_core.errors import InputError
from gradian_core.index.manifest import (
    BlockEntry,
    GradientSpec,
    IndexInputs,
    IndexManifest,
    ShardEntry,
    write_manifest,
)

MANIFEST = IndexManifest(
    id="abc",
    created_by={"name": "gradian-ml", "version": "0.1.0"},
    inputs=IndexInputs(
        adapter="a1",
        base="b1",
        dataset="d1",
        tokenizer="t1",
        spec=GradientSpec(max_seq_length=64),
        seed=7,
        dtype="float32",
        device="cpu",
        attn_implementation="eager",
        libraries={"torch": "2.13.0"},
    ),
    provenance={"base_model": "org/\x1b[31mmodel"},
    blocks=(BlockEntry(name="m", parameters=("A",), shapes=((2, 3),), dim=6, stored_dim=6),),
    n=2,
    n_rows_total=2,
    shards=(ShardEntry(rows=2, size=100, digest="s1"),),
    notes=("something was guessed",),
)


@pytest.fixture
def index(tmp_path):
    folder = tmp_path / "index" / "abc"
    folder.mkdir(parents=True)
    write_manifest(folder, MANIFEST)
    return folder


def test_summary_names_what_decides_the_numbers():
    lines = [" ".join(line.split()) for line in summary(MANIFEST).splitlines()]
    for line in (
        "id abc",
        "base_model org/model",
        "rows 2 of 2, in 1 shards",
        "seed 7",
        "digest of dataset d1",
        "grads.max_seq_length 64",
        "torch 2.13.0",
        "note: something was guessed",
    ):
        assert line in lines


def test_show_index(gradian, index):
    assert gradian("show-index", index).out == summary(MANIFEST) + "\n"
    assert json.loads(gradian("show-index", index, "--json").out)["id"] == "abc"


def test_the_only_index_in_a_folder(gradian, index):
    assert find_index(index.parent) == index
    assert gradian("show-index", index.parent).code == 0
    (index.parent / "def").mkdir()
    write_manifest(index.parent / "def", MANIFEST)
    with pytest.raises(InputError, match="holds 2 indexes: abc, def"):
        find_index(index.parent)


def test_no_index(gradian, tmp_path):
    assert gradian("show-index", tmp_path / "nothing").code == 2
    assert gradian("show-index", tmp_path).code == 2


def test_verify_names_what_is_damaged(gradian, index):
    # the manifest speaks of a shard that is not there
    result = gradian("show-index", index, "--verify")
    assert result.code == 2
    assert "00000.h5 is damaged: the file is missing" in result.err
    assert result.out == ""
