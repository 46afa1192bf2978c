"""Opening and reading: blocks, scales, memory, and every kind of damage."""

from __future__ import annotations

import hashlib
import json
import shutil

import h5py
import numpy as np
import pytest

from gradian_core.errors import InputError, UsageError
from gradian_core.index import blocks, shards
from gradian_core.index.damage import DamagedIndexError
from gradian_core.index.reader import GradientIndex, row_scales
from gradian_core.protocols import BlockGradients


@pytest.fixture
def tokens(fakes):
    return fakes.make_tokens(30)


@pytest.fixture
def index(fakes, tokens, tmp_path):
    return fakes.make_index(tmp_path, tokens)


def whole(block: BlockGradients):
    out = np.full((block.n, block.dim), np.nan)
    for rows, gradients in block.chunks():
        out[rows] = gradients
    return out


def test_a_block_comes_in_stored_order(fakes, tokens, index):
    block = index.block("upper")
    assert (block.n, block.dim, block.exact_dim, block.name) == (30, 72, 72, "upper")
    expected = fakes.exact(tokens)[index.row_numbers, 72:144]
    np.testing.assert_array_equal(whole(block), expected.astype(np.float32))
    np.testing.assert_array_equal(block.squared_norms, index.squared_norms[:, 1])


def test_a_block_that_fits_is_read_once(index):
    block = index.block("upper", memory_limit=30 * 72 * 4)
    first = whole(block)
    np.testing.assert_array_equal(whole(block), first)
    assert block.reads == 1


def test_a_block_that_does_not_fit_is_streamed(index, monkeypatch):
    monkeypatch.setattr(blocks, "PIECE_BYTES", 5 * 72 * 4)
    monkeypatch.setattr(blocks, "chunk_rows", lambda _: 1)
    block = index.block("upper", memory_limit=30 * 72 * 4 - 1)
    whole(block)
    whole(block)
    assert block.reads == 2
    assert max(len(gradients) for _, gradients in block.chunks()) == 5
    assert block._kept is None


@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_pieces_fit_a_cache_cover_every_row_and_are_never_empty(index, monkeypatch, limit):
    expected = whole(index.block("upper"))
    for size, most in ((5 * 72 * 4, 5), (10, 1)):
        monkeypatch.setattr(blocks, "PIECE_BYTES", size)
        pieces = list(index.block("upper", memory_limit=limit).chunks())
        assert {len(gradients) for _, gradients in pieces} <= set(range(1, most + 1))
        assert [i for rows, _ in pieces for i in range(rows.start, rows.stop)] == list(range(30))
        np.testing.assert_array_equal(np.concatenate([g for _, g in pieces]), expected)


def test_reads_are_whole_chunks_of_the_file(index, monkeypatch):
    monkeypatch.setattr(blocks, "chunk_rows", lambda _: 3)
    monkeypatch.setattr(blocks, "READ_BYTES", 7 * 72 * 4)
    block = index.block("upper", memory_limit=0)
    asked = []
    read = block._read_piece
    block._read_piece = lambda shard, rows: asked.append((shard, rows)) or read(shard, rows)
    list(block.chunks())
    for shard, rows in asked:
        assert (rows.start - shard.rows.start) % 3 == 0
        assert rows.stop - rows.start == 6 or rows.stop == shard.rows.stop


def test_a_plugin_cannot_change_what_others_read(index):
    block = index.block("upper")
    for _, gradients in block.chunks():
        with pytest.raises(ValueError, match="read-only"):
            gradients[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        block.squared_norms[0] = 1.0


def test_scaled_blocks_agree_with_their_norms(index):
    scales = np.linspace(0.1, 3.0, index.n)
    block = index.block("upper", scales=scales)
    np.testing.assert_allclose(
        whole(block), whole(index.block("upper")) * scales[:, None], rtol=1e-15
    )
    np.testing.assert_allclose((whole(block) ** 2).sum(1), block.squared_norms, rtol=1e-14)


def test_row_scales(index, tokens):
    counts = tokens.supervised_counts[index.row_numbers]
    norms = np.sqrt(index.squared_norms.sum(1))
    ones = np.ones(index.n)
    for reduction, normalization, expected in [
        ("mean", "none", ones),
        ("sum", "none", counts),
        ("mean", "token_count", 1 / counts),
        ("sum", "token_count", ones),
        ("mean", "l2", 1 / norms),
        ("sum", "l2", 1 / norms),
    ]:
        np.testing.assert_allclose(row_scales(index, reduction, normalization), expected)
    with pytest.raises(UsageError, match="loss reduction 'max'"):
        row_scales(index, "max", "none")
    with pytest.raises(UsageError, match="normalization 'l1'"):
        row_scales(index, "mean", "l1")


def test_a_gradient_of_zero_stays_zero_under_l2(fakes, tokens, tmp_path):
    capture = fakes.BigramCapture()
    capture.factor = 0.0
    index = fakes.make_index(tmp_path, tokens, capture)
    assert not row_scales(index, "mean", "l2").any()


def test_gather_takes_places_in_the_file(fakes, tokens, index):
    found = index.gather([17, 3, 17])
    exact = fakes.exact(tokens)[[17, 3, 17]].astype(np.float32)
    np.testing.assert_array_equal(np.concatenate(list(found.values()), axis=1), exact)
    with pytest.raises(UsageError, match="Row 99"):
        index.gather([99])


# --- damage --------------------------------------------------------------------------------------


def flip(path, at):
    raw = bytearray(path.read_bytes())
    raw[at] ^= 0x10
    path.write_bytes(raw)


def offset_of(path, name):
    with h5py.File(path) as file:
        return file[name].id.get_chunk_info(0).byte_offset


def test_a_sound_index_verifies(index):
    assert index.verify() == ()


def test_a_flipped_bit_is_found_when_read_and_named(index):
    path = index.folder / "shards" / "00002.h5"
    flip(path, offset_of(path, "blocks/upper") + 9)
    index = GradientIndex.open(index.folder)
    with pytest.raises(DamagedIndexError, match=r"00002\.h5 .*checksum does not match.*--force"):
        whole(index.block("upper"))
    whole(index.block("lower"))
    (problem,) = index.verify()
    assert "00002.h5" in problem


def test_content_that_was_rewritten_is_found_by_verify(index):
    path = index.folder / "shards" / "00001.h5"
    with h5py.File(path, "r+") as file:
        file["blocks/upper"][0, 0] += 1.0
    (problem,) = index.verify()
    assert "not what was written" in problem


def other_index(fakes, tmp_path):
    """An index of other gradients with files of the same sizes."""
    return fakes.make_index(tmp_path / "other", fakes.make_tokens(30, seed=3))


def swap(fakes, index, tmp_path):
    folder = index.folder / "shards"
    shutil.copy(folder / "00001.h5", folder / "00000.h5")


def foreign(fakes, index, tmp_path):
    other = other_index(fakes, tmp_path)
    shutil.copy(other.folder / "shards" / "00001.h5", index.folder / "shards" / "00001.h5")


def written_anew(index, factor):
    """Write a shard once more, with its own key and gradients that are multiplied."""
    path = index.folder / "shards" / "00001.h5"
    with h5py.File(path) as file:
        rows = index.manifest.shards[1].rows
        facts = shards.read_facts(file, rows, len(index.blocks), scaled=False)
        values = {entry.name: factor * file[f"blocks/{entry.name}"][...] for entry in index.blocks}
        key = shards.read_key(file)
    shards.write_shard(path, key, facts, values)


def of_old(fakes, index, tmp_path):
    written_anew(index, np.float32(2.0))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (swap, "00000.h5 is damaged: it is shard 00001 of this index under another name"),
        (foreign, "00001.h5 is damaged: it belongs to another index"),
        (of_old, "00001.h5 is damaged: its content is not what the manifest says"),
    ],
)
def test_a_shard_that_does_not_belong_here(fakes, index, tmp_path, change, text):
    change(fakes, index, tmp_path)
    with pytest.raises(DamagedIndexError) as caught:
        GradientIndex.open(index.folder)
    assert text in str(caught.value)
    assert "--force" in str(caught.value)
    (problem,) = index.verify()
    assert text in problem


def test_an_index_file_of_another_index(fakes, index, tmp_path):
    shutil.copy(other_index(fakes, tmp_path).folder / "index.h5", index.folder / "index.h5")
    with pytest.raises(DamagedIndexError, match=r"index\.h5 is damaged.*another index"):
        GradientIndex.open(index.folder)


def test_every_flipped_digit_of_the_manifest_is_found(index):
    path = index.folder / "manifest.json"
    whole = path.read_text()
    digits = [place for place, char in enumerate(whole) if char in "0123456789"]
    for place in digits[:: max(1, len(digits) // 60)]:
        digit = str((int(whole[place]) + 1) % 10)
        path.write_text(whole[:place] + digit + whole[place + 1 :])
        with pytest.raises(InputError, match=r"manifest\.json"):
            GradientIndex.open(index.folder)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda path: path.unlink(), "missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "bytes in place of"),
    ],
)
def test_missing_and_truncated_shards_are_found_on_opening(index, change, reason):
    change(index.folder / "shards" / "00001.h5")
    with pytest.raises(DamagedIndexError, match=rf"00001\.h5 is damaged.*{reason}.*--force"):
        GradientIndex.open(index.folder)


@pytest.mark.parametrize("name", ["positions", "squared_norms", "losses"])
def test_a_damaged_index_file(index, name):
    path = index.folder / "index.h5"
    flip(path, offset_of(path, name))
    with pytest.raises(DamagedIndexError, match=r"index\.h5 .*checksum"):
        GradientIndex.open(index.folder)


def rewrite(path, name, array):
    with h5py.File(path, "r+") as file:
        del file[name]
        if array is not None:
            file[name] = array


@pytest.mark.parametrize(
    "array",
    [None, np.arange(29), np.arange(30.0), np.arange(30) + 1, np.zeros(30, np.int64)],
)
def test_an_index_file_that_contradicts_the_manifest(index, array):
    rewrite(index.folder / "index.h5", "positions", array)
    with pytest.raises(DamagedIndexError, match=r"index\.h5 is damaged"):
        GradientIndex.open(index.folder)


@pytest.mark.parametrize("array", [None, np.zeros((8, 71), "<f4"), np.zeros((8, 72), "<f8")])
def test_a_shard_that_contradicts_the_manifest(index, array):
    rewrite(index.folder / "shards" / "00000.h5", "blocks/upper", array)
    with pytest.raises(DamagedIndexError, match=r"00000\.h5 is damaged"):
        whole(index.block("upper"))


def test_an_index_file_that_is_something_else(index):
    (index.folder / "index.h5").write_bytes(b"no HDF5")
    with pytest.raises(DamagedIndexError, match=r"index\.h5 is damaged"):
        GradientIndex.open(index.folder)


# --- the manifest --------------------------------------------------------------------------------


def edit(index, **changes):
    path = index.folder / "manifest.json"
    raw = json.loads(path.read_text())
    raw.update(changes)
    del raw["sha256"]
    raw["sha256"] = hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(raw))


def test_not_an_index(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        GradientIndex.open(tmp_path / "nothing")
    with pytest.raises(InputError, match="not a gradient index"):
        GradientIndex.open(tmp_path)


def test_an_unfinished_build(index):
    (index.folder / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"incomplete.*Run the same command again"):
        GradientIndex.open(index.folder)


@pytest.mark.parametrize("version", ["2.0", "10.3"])
def test_a_newer_format_is_refused_even_with_unknown_fields(index, version):
    edit(index, format_version=version, surprise=1)
    with pytest.raises(InputError, match=r"this Gradian reads 1\.0.*Upgrade"):
        GradientIndex.open(index.folder)


def test_a_newer_minor_format_is_read(index):
    edit(index, format_version="1.7")
    assert GradientIndex.open(index.folder).n == 30


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b"NaN"])
def test_a_manifest_that_is_no_json_object(index, content):
    (index.folder / "manifest.json").write_bytes(content)
    with pytest.raises(InputError, match="not a JSON object"):
        GradientIndex.open(index.folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "zip"}, "not the manifest of a gradient index"),
        ({"format_version": "one"}, "not a format version"),
        ({"n": "many"}, "damaged: n:"),
        ({"n": 29}, "contradict each other"),
        ({"n_rows_total": 31}, "contradict each other"),
        ({"blocks": []}, "damaged: blocks:"),
    ],
)
def test_a_manifest_with_wrong_values(index, changes, message):
    edit(index, **changes)
    with pytest.raises(InputError, match=message):
        GradientIndex.open(index.folder)


def test_blocks_of_one_name_are_refused(index):
    block = index.manifest.blocks[0].model_dump(mode="json")
    edit(index, blocks=[block, block])
    with pytest.raises(InputError, match="contradict each other"):
        GradientIndex.open(index.folder)


def test_an_unreadable_manifest(index):
    (index.folder / "manifest.json").unlink()
    (index.folder / "manifest.json").mkdir()
    with pytest.raises(DamagedIndexError, match="it is a folder"):
        GradientIndex.open(index.folder)


def test_a_manifest_has_no_clock_and_says_who_made_it(index):
    raw = json.loads((index.folder / "manifest.json").read_text())
    assert set(raw["created_by"]) == {"gradian-ml"}
    assert not any("time" in key or "date" in key for key in raw)
