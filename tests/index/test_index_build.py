"""Building: what is stored, and that it does not depend on how."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import threading
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
from filelock import FileLock

from gradian_core.errors import CannotRunError, InputError
from gradian_core.index import hdf5, job, plan
from gradian_core.index.build import is_complete
from gradian_core.index.codec import encode
from gradian_core.index.reader import GradientIndex


def stored(index):
    """All gradients in file order, as they come out."""
    found = index.gather(sorted(index.row_numbers.tolist()))
    return np.concatenate([found[block.name] for block in index.blocks], axis=1)


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in {"build.lock", "builder.json"}
    }


def test_holds_the_exact_gradients_and_facts(fakes, tmp_path):
    tokens = fakes.make_tokens(21)
    index = fakes.make_index(tmp_path, tokens)
    exact = fakes.exact(tokens)
    np.testing.assert_array_equal(stored(index), exact.astype(np.float32))
    at = index.row_numbers
    capture = fakes.BigramCapture()
    w, b = capture.w.numpy(), capture.b.numpy()
    losses = [fakes.mean_loss(tokens, row, w, b) for row in at]
    np.testing.assert_allclose(index.losses, losses, rtol=1e-12)
    np.testing.assert_array_equal(index.supervised_counts, tokens.supervised_counts[at])
    squared = (stored(index).astype(np.float64) ** 2).sum(axis=1)[at]
    np.testing.assert_allclose(index.squared_norms.sum(axis=1), squared, rtol=1e-14)


def test_longest_rows_first_and_equal_lengths_in_file_order(fakes, tmp_path):
    tokens = fakes.make_tokens(40)
    at = fakes.make_index(tmp_path, tokens).row_numbers
    keys = [(-tokens.lengths[row], row) for row in at]
    assert keys == sorted(keys)
    assert sorted(at) == list(range(40))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_batch_and_shard_sizes_do_not_change_a_bit(fakes, tmp_path, dtype):
    tokens = fakes.make_tokens(21)
    reference = fakes.make_index(tmp_path / "a", tokens, spec={"storage_dtype": dtype})
    for number, settings in enumerate(
        [{"batch_size": 1}, {"batch_tokens": 20}, {"chunk_size": 3}, {"chunk_size": 1000}]
    ):
        other = fakes.make_index(
            tmp_path / str(number), tokens, spec={"storage_dtype": dtype}, **settings
        )
        np.testing.assert_array_equal(stored(other), stored(reference))
        np.testing.assert_array_equal(other.squared_norms, reference.squared_norms)


def test_the_same_build_gives_the_same_bytes(fakes, tmp_path):
    tokens = fakes.make_tokens(21)
    one = fakes.make_index(tmp_path / "a", tokens)
    two = fakes.make_index(tmp_path / "b", tokens)
    assert files(one.folder) == files(two.folder)


def test_limits_of_batches_and_shards_are_kept(fakes, tmp_path):
    tokens = fakes.make_tokens(21)
    capture = fakes.BigramCapture()
    index = fakes.make_index(tmp_path, tokens, capture, batch_size=3, batch_tokens=30)
    assert [shard.rows for shard in index.manifest.shards] == [8, 8, 5]
    assert all(rows <= 3 and (rows == 1 or rows * width <= 30) for rows, width in capture.shapes)


def test_shards_are_bounded_in_bytes(fakes, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "SHARD_BYTES", 3 * 4 * 156)
    index = fakes.make_index(tmp_path, fakes.make_tokens(7), chunk_size=100)
    assert [shard.rows for shard in index.manifest.shards] == [3, 3, 1]


def test_rows_without_supervision_are_skipped_and_recorded(fakes, tmp_path):
    tokens = fakes.make_tokens(12, unsupervised=(2, 7))
    full = tokens.full_supervised.copy()
    full[7] = 4
    tokens = replace(tokens, full_supervised=full)
    index = fakes.make_index(tmp_path, tokens)
    assert (index.n, index.manifest.n_rows_total) == (10, 12)
    assert sorted(index.row_numbers) == [0, 1, 3, 4, 5, 6, 8, 9, 10, 11]
    skipped = {row.position: row.reason for row in index.manifest.skipped}
    assert skipped[2] == "it has no supervised token"
    assert "beyond max_seq_length 64" in skipped[7]
    assert tokens.ids[2] in " ".join(index.notes)


def test_nothing_to_differentiate_is_an_input_error(fakes, tmp_path):
    tokens = fakes.make_tokens(3, unsupervised=(0, 1, 2))
    with pytest.raises(InputError, match="None of the 3 rows has a supervised token"):
        fakes.make_index(tmp_path, tokens)


def test_half_floats_cost_half_and_little_accuracy(fakes, tmp_path):
    tokens = fakes.make_tokens(30)
    capture = fakes.BigramCapture()
    capture.factor = 1e-7
    index = fakes.make_index(tmp_path, tokens, capture, spec={"storage_dtype": "float16"})
    exact = 1e-7 * fakes.exact(tokens)
    error = np.linalg.norm(stored(index) - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert 1e-5 < error.max() < 3e-4
    squared = (stored(index).astype(np.float64) ** 2).sum(axis=1)[index.row_numbers]
    np.testing.assert_allclose(index.squared_norms.sum(axis=1), squared, rtol=1e-14)
    assert index.manifest.row_bytes == 2 * exact.shape[1]


def test_projection_is_applied_and_blocks_that_are_too_narrow_are_told(fakes, tmp_path):
    tokens = fakes.make_tokens(20)
    spec = {"projection_dim": 30, "projection_seed": 5}
    index = fakes.make_index(tmp_path, tokens, spec=spec)
    assert [(b.dim, b.stored_dim) for b in index.blocks] == [(72, 30), (72, 30), (12, 12)]
    assert any("1 of 3 blocks are stored exactly" in note for note in index.notes)
    np.testing.assert_array_equal(
        index.gather(range(20))["bias"], fakes.exact(tokens)[:, 144:].astype(np.float32)
    )
    from gradian_core.gradients.projection import make_projection

    project = make_projection("countsketch", 72, 30, 5, "upper")
    expected = project(torch.from_numpy(fakes.exact(tokens)[:, 72:144])).numpy()
    np.testing.assert_allclose(index.gather(range(20))["upper"], expected, rtol=1e-6, atol=1e-7)


def test_a_complete_index_is_opened_and_not_computed(fakes, tmp_path):
    tokens = fakes.make_tokens(12)
    first = fakes.make_index(tmp_path, tokens)
    before = {path: path.stat().st_mtime_ns for path in first.folder.rglob("*.h5")}
    capture = fakes.BigramCapture()
    assert is_complete(first.folder)
    second = fakes.make_index(tmp_path, tokens, capture)
    assert capture.rows == 0
    assert second.manifest == first.manifest
    assert before == {path: path.stat().st_mtime_ns for path in first.folder.rglob("*.h5")}


def test_a_complete_index_needs_no_lock_and_no_writing(fakes, tmp_path):
    tokens = fakes.make_tokens(5)
    folder = fakes.make_index(tmp_path, tokens).folder
    with FileLock(folder / "build.lock"):
        assert fakes.make_index(tmp_path, tokens).n == 5


def test_force_builds_again(fakes, tmp_path):
    tokens = fakes.make_tokens(12)
    first = fakes.make_index(tmp_path, tokens)
    content = files(first.folder)
    capture = fakes.BigramCapture()
    again = fakes.make_index(tmp_path, tokens, capture, force=True)
    assert capture.rows == 12
    assert files(again.folder) == content


def test_progress_counts_rows(fakes, tmp_path):
    seen = []
    fakes.make_index(tmp_path, fakes.make_tokens(12), progress=lambda *now: seen.append(now))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (12, 12)


def test_another_index_in_the_folder_is_not_overwritten(fakes, tmp_path):
    one = fakes.make_index(tmp_path, fakes.make_tokens(5))
    tokens = fakes.make_tokens(5, seed=1)
    other = fakes.make_index(tmp_path, tokens)
    shutil.rmtree(other.folder)
    one.folder.rename(other.folder)
    with pytest.raises(InputError, match="holds the index"):
        fakes.make_index(tmp_path, tokens)


def test_the_virtual_file_is_the_index_in_one_piece(fakes, tmp_path, monkeypatch):
    tokens = fakes.make_tokens(21)
    index = fakes.make_index(tmp_path / "a", tokens)
    (tmp_path / "b").mkdir()
    moved = index.folder.rename(tmp_path / "b" / "moved")
    monkeypatch.chdir(tmp_path / "b")
    with h5py.File(moved / "index.h5") as file:
        assert file.attrs["encoding-type"] == "gradian-gradient-index"
        np.testing.assert_array_equal(
            file["blocks/upper"][...],
            fakes.exact(tokens)[file["positions"][...], 72:144].astype(np.float32),
        )
    np.testing.assert_array_equal(
        stored(GradientIndex.open(moved)), fakes.exact(tokens).astype(np.float32)
    )


def test_shards_are_uncompressed_checksummed_whole_rows(fakes, tmp_path):
    index = fakes.make_index(tmp_path, fakes.make_tokens(12))
    with h5py.File(index.folder / "shards" / "00000.h5") as file:
        dataset = file["blocks/lower"]
        assert dataset.fletcher32
        assert dataset.compression is None
        assert dataset.chunks == (8, 72)
    assert hdf5.chunk_rows(1000) == 1048
    assert hdf5.chunk_rows(1 << 30) == 1


# --- what goes wrong ------------------------------------------------------------------------------


class Poisoned:
    """A capture that gives one row a number that is none."""

    def __init__(self, fakes, width, where):
        self.inner = fakes.BigramCapture()
        self.blocks = self.inner.blocks
        self.width = width
        self.where = where

    def __call__(self, batch):
        result = self.inner(batch)
        hit = batch.attention_mask.sum(1) == self.width
        target = result.losses if self.where == "loss" else result.blocks["upper"][:, 3]
        target[hit] = float("nan") if self.where == "loss" else float("inf")
        return result


@pytest.mark.parametrize("where", ["loss", "gradient"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_non_finite_numbers_stop_and_name_the_rows(fakes, tmp_path, where, dtype):
    tokens = fakes.make_tokens(20)
    width = int(np.sort(tokens.lengths)[3])
    bad = {tokens.ids[row] for row in np.flatnonzero(tokens.lengths == width)}
    with pytest.raises(CannotRunError, match="not a finite number") as caught:
        fakes.make_index(
            tmp_path, tokens, Poisoned(fakes, width, where), spec={"storage_dtype": dtype}
        )
    named = {word.strip(".,") for word in caught.value.message.split() if "-" in word}
    assert named
    assert named <= bad
    (folder,) = tmp_path.iterdir()
    # The shards before it are whole and stay; of the bad one there is nothing.
    assert sorted(path.name for path in (folder / "shards").iterdir()) == ["00000.h5", "00001.h5"]
    assert not is_complete(folder)


def test_overflow_of_the_storage_type_is_not_stored(fakes, tmp_path):
    capture = fakes.BigramCapture()
    capture.factor = 1e300
    with pytest.raises(CannotRunError, match="gradient of lower is not a finite number"):
        fakes.make_index(tmp_path, fakes.make_tokens(4), capture)


def test_gpu_memory_is_told_with_the_lever(fakes, tmp_path):
    capture = fakes.BigramCapture()

    class Exhausted:
        blocks = capture.blocks

        def __call__(self, batch):
            raise torch.cuda.OutOfMemoryError

    with pytest.raises(CannotRunError, match=r"4 rows of 14 tokens.*grads.batch_size"):
        fakes.make_index(tmp_path, fakes.make_tokens(20), Exhausted())


def test_a_disk_that_is_too_small_is_told_before_any_work(fakes, tmp_path, monkeypatch):
    tokens = fakes.make_tokens(12)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(job.shutil, "disk_usage", lambda _: usage._replace(free=1000))
    capture = fakes.BigramCapture()
    with pytest.raises(CannotRunError, match=r"needs .* MB more, but only 0 MB .*storage_dtype"):
        fakes.make_index(tmp_path, tokens, capture)
    assert capture.rows == 0


def test_the_disk_estimate_is_close_and_not_below(fakes, tmp_path):
    tokens = fakes.make_tokens(200)
    index = fakes.make_index(tmp_path, tokens, chunk_size=100)
    planned = plan.plan_build(tokens, fakes.BLOCKS, index.manifest.inputs.spec, 100)
    for number, shard in enumerate(index.manifest.shards):
        assert shard.size <= planned.shard_bytes(number) <= shard.size * 1.1 + (64 << 10)


def test_a_disk_that_fills_up_leaves_whole_shards_only(fakes, tmp_path, monkeypatch):
    tokens = fakes.make_tokens(20)
    calls = []

    def fsync(handle):
        calls.append(handle)
        # Each shard syncs itself and its folder: this is the third shard.
        if len(calls) == 5:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(hdf5.os, "fsync", fsync)
        with pytest.raises(CannotRunError, match=r"No space left.*Whole shards are kept"):
            fakes.make_index(tmp_path, tokens)
    (folder,) = tmp_path.iterdir()
    assert sorted(path.name for path in (folder / "shards").iterdir()) == ["00000.h5", "00001.h5"]
    capture = fakes.BigramCapture()
    index = fakes.make_index(tmp_path, tokens, capture)
    assert capture.rows == 4
    assert any("2 of 3 shards were there" in note for note in index.notes)


def test_a_folder_that_cannot_be_written(fakes, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotRunError, match="cannot be written"):
        fakes.make_index(tmp_path / "file", fakes.make_tokens(3))


def test_two_builders_of_one_index(fakes, tmp_path):
    tokens = fakes.make_tokens(5)
    folder = fakes.make_index(tmp_path, tokens).folder
    (folder / "manifest.json").unlink()
    lock = FileLock(folder / "build.lock", thread_local=False)
    with lock, pytest.raises(CannotRunError, match="Another process is building"):
        fakes.make_index(tmp_path, tokens)
    lock.acquire()
    timer = threading.Timer(0.2, lock.release)
    timer.start()
    assert fakes.make_index(tmp_path, tokens, wait=30.0).n == 5
    timer.join()


def test_who_holds_the_lock_is_told_and_the_dead_hold_nothing(fakes, tmp_path):
    tokens = fakes.make_tokens(5)
    folder = fakes.make_index(tmp_path, tokens).folder
    (folder / "manifest.json").unlink()
    builds = (
        "import sys, time; from pathlib import Path; from gradian_core.index.disk import "
        "only_builder\n"
        "with only_builder(Path(sys.argv[1]), 0):\n    print('held', flush=True); time.sleep(60)"
    )
    argv = [sys.executable, "-c", builds, str(folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout.readline() == "held\n"
            words = rf"Another process is building .*\(process {other.pid} on .*, since 2"
            with pytest.raises(CannotRunError, match=words):
                fakes.make_index(tmp_path, tokens)
        finally:
            other.kill()
    assert (folder / "builder.json").exists()
    assert fakes.make_index(tmp_path, tokens).n == 5
    assert not (folder / "builder.json").exists()


@pytest.mark.parametrize("name", ["manifest.json", "index.h5", "shards", "shards/00000.h5"])
def test_a_folder_in_the_place_of_a_file_is_replaced(fakes, tmp_path, name):
    tokens = fakes.make_tokens(5)
    folder = fakes.make_index(tmp_path, tokens).folder
    content = files(folder)
    path = folder / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    if name == "shards":
        path.write_text("no folder")
    else:
        (path / "inside").mkdir(parents=True)
    index = fakes.make_index(tmp_path, tokens)
    assert any("repaired" in note for note in index.notes)
    assert files(folder) == content


def test_encoding_happens_once_per_row_and_block(fakes, tmp_path):
    # The scales in the file are those of the rows they stand beside.
    tokens = fakes.make_tokens(9)
    index = fakes.make_index(tmp_path, tokens, spec={"storage_dtype": "float16"})
    expected = fakes.exact(tokens)[index.row_numbers, 144:].astype(np.float32)
    codes, scales = encode(expected)
    with h5py.File(index.folder / "index.h5") as file:
        np.testing.assert_array_equal(file["blocks/bias"][...], codes)
        np.testing.assert_array_equal(file["scales"][:, 2], scales)
