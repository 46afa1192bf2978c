"""A build that is killed goes on where it was, and ends with the same bytes."""

import os
import signal
import subprocess
import sys
import time

import pytest
from filelock import FileLock

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")

PROGRAM = "import sys; from gradian_core.cli.app import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def command(tiny, tmp_path):
    """Arguments of ``gradian index`` over many small shards, for a cache."""
    (tmp_path / "gradian.yaml").write_text("grads: {chunk_size: 1}\ndevice: cpu\n")

    def make(cache):
        return [
            "index",
            *("--config", str(tmp_path / "gradian.yaml")),
            *("--base-model", str(tiny.base)),
            *("--adapter", str(tiny.adapter)),
            *("--dataset", str(tiny.train)),
            *("--cache-dir", str(cache)),
        ]

    return make


def start(arguments):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def shards(cache):
    return sorted(cache.glob("index/*/shards/*.h5"))


def content(cache):
    return {
        path.relative_to(cache).as_posix(): path.read_bytes()
        for path in (cache / "index").rglob("*")
        if path.is_file() and path.name != "build.lock"
    }


def test_a_killed_build_goes_on(command, gradian, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    process = start(command(killed))
    try:
        deadline = time.monotonic() + 120
        while len(shards(killed)) < 5 and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        process.kill()
        _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said
    done = shards(killed)
    assert 5 <= len(done) < 60, "the build was over before it was killed"
    assert list(killed.glob("index/*/manifest.json")) == []
    stamps = {path: path.stat().st_mtime_ns for path in done}

    folder = done[0].parents[1]
    shown = gradian("show-index", folder)
    assert shown.code == 2
    assert "incomplete" in shown.err

    with FileLock(folder / "build.lock"):
        result = gradian(*command(killed), "--quiet")
    assert result.code == 3
    assert "Another process is building the index" in result.err

    result = gradian(*command(killed))
    assert result.code == 0, result.err
    assert f"{len(done)} of 60 shards were there from an earlier build." in result.err
    assert {path: path.stat().st_mtime_ns for path in done} == stamps

    assert gradian(*command(whole), "--quiet").code == 0
    assert content(killed) == content(whole)
