"""Caches and folders that were there before: damaged, newer, read-only, somebody else's."""

import errno
import os
import shutil

import pytest


@pytest.fixture
def used(box, warm):
    """The inputs with a copy of a complete cache."""
    shutil.copytree(warm.cache, box.cache)
    box.index = box.cache / "index" / warm.report.provenance.index["id"]
    return box


def test_a_flipped_byte_is_found_and_force_repairs_it(used, leftovers, warm):
    shard = used.index / "shards" / "00000.h5"
    whole = shard.read_bytes()
    # among the gradients, which are most of the file
    spoilt = bytearray(whole)
    spoilt[len(whole) // 2] ^= 0xFF
    shard.write_bytes(spoilt)
    result = used.run()
    assert result.code == 2
    assert result.err.startswith(f"error: {shard} is damaged: a checksum does not match.")
    assert "--force" in result.err
    assert leftovers(used.out) == []
    result = used.run("--force")
    assert result.code == 0, result.err
    assert shard.read_bytes() == whole
    assert (used.out / "report.json").read_text() == warm.report.to_json()


def test_an_index_of_a_newer_gradian_is_left_alone(used):
    path = used.index / "manifest.json"
    newer = path.read_text().replace('"format_version": "1.0"', '"format_version": "2.0"')
    path.write_text(newer)
    for command in ("attribute", "index"):
        result = used.run(command=command)
        assert result.code == 2
        assert "format 2.0; this Gradian reads 1.0" in result.err
        assert "Upgrade" in result.err
    assert path.read_text() == newer


def test_a_complete_cache_may_be_read_only(used, warm):
    used.read_only()
    result = used.run()
    assert result.code == 0, result.err
    assert (used.out / "report.json").read_text() == warm.report.to_json()


def test_a_full_disk_keeps_no_report_from_the_terminal(used, leftovers):
    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    used.monkeypatch.setattr("gradian_core.files.os.fsync", full)
    result = used.run()
    assert result.code == 3
    # what was being written is named, not the cache
    assert f"error: The disk is full: {used.out / 'run.json'} cannot be written." in result.err
    assert leftovers(used.out) == []
    assert "capability regressed" in result.out


def test_a_sound_run_ends_well(used, warm):
    result = used.run()
    assert result.code == 0, result.err
    names = {path.name for path in used.out.iterdir()}
    assert names == {"report.json", "report.md", "scores.csv", "run.json"}
    assert (used.out / "report.json").read_text() == warm.report.to_json()
    assert "capability regressed" in result.out


def test_the_demo_touches_no_folder_of_somebody_else(gradian, tmp_path):
    folder = tmp_path / "mine"
    (folder / "run").mkdir(parents=True)
    (folder / "run" / "weights").write_text("years of work")
    (folder / "notes.txt").write_text("mine")
    result = gradian("demo", "--out", folder, "--quiet")
    assert result.code == 2
    assert "notes.txt" in result.err
    assert "--out" in result.err
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    assert found == {"run", "run/weights", "notes.txt"}
    assert (folder / "run" / "weights").read_text() == "years of work"
