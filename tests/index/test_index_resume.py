"""A build that was killed goes on at the last whole shard and ends with the same bytes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gradian_core.index.reader import GradientIndex

HERE = Path(__file__).parent

KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import index_fakes as fakes

def stop(done, total):
    if done > 18:
        os.kill(os.getpid(), signal.SIGKILL)

fakes.make_index(Path(sys.argv[2]), fakes.make_tokens(30), progress=stop)
"""

FULL = """
import resource, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import index_fakes as fakes
from gradian_core.errors import CannotRunError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))
try:
    fakes.make_index(Path(sys.argv[2]), fakes.make_tokens(30))
except CannotRunError as error:
    print(error)
"""


def run(script, folder):
    return subprocess.run(
        [sys.executable, "-c", script, str(HERE), str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in {"build.lock", "builder.json"}
    }


@pytest.fixture
def whole(fakes, tmp_path):
    """An index built without interruption, and its cache folder's name of old."""
    return fakes.make_index(tmp_path / "whole", fakes.make_tokens(30))


def test_killed_and_resumed(fakes, tmp_path, whole):
    cache = tmp_path / "killed"
    assert run(KILLED, cache).returncode == -signal.SIGKILL
    folder = cache / whole.folder.name
    kept = {f"shards/{number:05d}.h5" for number in range(2)}
    assert set(files(folder)) == kept
    capture = fakes.BigramCapture()
    index = fakes.make_index(cache, fakes.make_tokens(30), capture)
    assert capture.rows == 30 - 16
    assert any("2 of 4 shards were there" in note for note in index.notes)
    assert files(folder) == files(whole.folder)


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs POSIX file size limits")
def test_a_write_that_the_kernel_refuses(tmp_path):
    # HDF5 itself would crash here; see hdf5.new_image.
    done = run(FULL, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cannot be written" in done.stdout
    (folder,) = tmp_path.iterdir()
    assert files(folder) == {}


def unfinished(fakes, tmp_path, tokens):
    index = fakes.make_index(tmp_path, tokens)
    for name in ("manifest.json", "index.h5"):
        (index.folder / name).unlink()
    return index


def test_half_written_files_are_removed(fakes, tmp_path, whole):
    (whole.folder / "manifest.json").unlink()
    (whole.folder / "shards" / "00007.h5.partial").write_bytes(b"half")
    (whole.folder / "shards" / "00008.h5").write_bytes(b"of another cut")
    index = fakes.make_index(tmp_path / "whole", fakes.make_tokens(30))
    assert sorted(path.name for path in (index.folder / "shards").iterdir()) == [
        f"{number:05d}.h5" for number in range(4)
    ]


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_a_damaged_shard_is_built_again(fakes, tmp_path, whole, damage):
    content = files(whole.folder)
    path = whole.folder / "shards" / "00002.h5"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes({"flip": raw, "cut": raw[:-100], "empty": b""}[damage])
    (whole.folder / "manifest.json").unlink()
    capture = fakes.BigramCapture()
    index = fakes.make_index(tmp_path / "whole", fakes.make_tokens(30), capture)
    assert capture.rows == 8
    assert any("00002.h5 is damaged" in note for note in index.notes)
    assert files(whole.folder) == content


def test_a_lost_shard_of_a_complete_index_is_repaired(fakes, tmp_path, whole):
    content = files(whole.folder)
    (whole.folder / "shards" / "00001.h5").unlink()
    capture = fakes.BigramCapture()
    index = fakes.make_index(tmp_path / "whole", fakes.make_tokens(30), capture)
    assert capture.rows == 8
    assert any("00001.h5 is damaged" in note and "repaired" in note for note in index.notes)
    assert files(whole.folder) == content


def test_shards_cut_otherwise_are_not_mixed_in(fakes, tmp_path):
    tokens = fakes.make_tokens(30)
    unfinished(fakes, tmp_path, tokens)
    capture = fakes.BigramCapture()
    index = fakes.make_index(tmp_path, tokens, capture, chunk_size=7)
    assert capture.rows == 30
    assert any("came from other settings" in note for note in index.notes)
    assert GradientIndex.open(index.folder).verify() == ()


def test_shards_of_other_rows_are_not_mixed_in(fakes, tmp_path):
    # The same id by mistake (a caller's fingerprint that misses a change) is found out.
    tokens = fakes.make_tokens(30)
    index = unfinished(fakes, tmp_path, tokens)
    other = fakes.make_tokens(30, seed=9)
    from gradian_core.index.build import build

    capture = fakes.BigramCapture()
    build(index.folder, index.manifest.inputs, other, capture, chunk_size=8)
    assert capture.rows == 30
