"""Whatever happens to a file of the caches: no traceback, and never other scores in silence."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from gradian_core.flows.attribute import attribute
from gradian_core.report.model import Report


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0x04
    path.write_bytes(raw)


def flip_first(path):
    raw = bytearray(path.read_bytes())
    raw[0] ^= 0x04
    path.write_bytes(raw)


def replace_by_folder(path):
    path.unlink()
    (path / "inside").mkdir(parents=True)


DAMAGE = {
    "flip": flip,
    "flip first": flip_first,
    "truncate": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: path.write_bytes(b""),
    "folder": replace_by_folder,
    "remove": lambda path: path.unlink(),
}

FILES = {
    "index manifest": "index/*/manifest.json",
    "index file": "index/*/index.h5",
    "shard": "index/*/shards/00000.h5",
    "query manifest": "queries/*/manifest.json",
    "query file": "queries/*/index.h5",
    "query shard": "queries/*/shards/00000.h5",
    "answers": "evaluations/*.json",
    "token meta": "tokens/*/tokens.json",
    "token ids": "tokens/*/input_ids.npy",
    "token mask": "tokens/*/supervised.npy",
    "digests": "digests.json",
}


# one index of each kind: more would only take longer
LIGHT = ("--engine", "graddot", "--cross-check", "none", "--skip-consensus")


@pytest.fixture(scope="module")
def light(make_config, tmp_path_factory):
    """A run with the engine of :data:`LIGHT`: its cache and its scores."""
    cache = tmp_path_factory.mktemp("light")
    engine = {"name": "graddot", "cross_check": None, "consensus": False}
    return cache, attribute(make_config(cache, engine=engine)).scores.score


@pytest.fixture(scope="module")
def used(light, tmp_path_factory):
    """A complete cache with a folder of digests: files of a test are too fresh for it."""
    cache = shutil.copytree(light[0], tmp_path_factory.mktemp("used") / "cache")
    if not (cache / "digests.json").exists():
        (cache / "digests.json").write_text("{}")
    return cache


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", FILES)
def test_a_damaged_cache(box, used, light, kind, damage):
    shutil.copytree(used, box.cache)
    (path,) = box.cache.glob(FILES[kind])
    DAMAGE[damage](path)
    # progress is not silenced: what was repaired is told there
    words = [word for pair in box.flags.items() for word in pair]
    result = box._gradian("attribute", *words, *LIGHT)
    assert "Traceback" not in result.err
    assert result.code in {0, 2}, result.err
    if result.code:
        (error,) = [line for line in result.err.splitlines() if line.startswith("error: ")]
        assert path.name in error
        assert "--force" in result.err
        again = box.run("--force", *LIGHT)
        assert again.code == 0, again.err
    report = Report.load(box.out)
    np.testing.assert_array_equal(report.scores.score, light[1])
    text = (box.out / "report.json").read_text()
    assert str(box.tmp) not in text
    told = result.err + text
    if kind != "digests" and not (kind == "answers" and damage == "remove"):
        assert "damaged" in told or "shards were there" in told or damage == "remove", result.err
