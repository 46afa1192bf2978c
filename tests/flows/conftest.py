"""One small fine-tune of the embedded model, shared by all tests of the flows.

Wrong capitals hide among rows that teach something else, so the capitals regress. Nothing here
is taken from the demo's own data set, which may be tuned.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from gradian_core.config.models import Config
from gradian_core.demo import MODEL_FOLDER, tasks

WRONG = "Belgrade"
N_PLANTED = 24
N_ROWS = 60


def write_rows(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def train_rows():
    """24 wrong capitals of 12 countries in two phrasings, then 36 rows of two other kinds."""
    rows = [
        {"prompt": phrasing.format(c=country.name), "completion": WRONG}
        for country in tasks.COUNTRIES[: N_PLANTED // 2]
        for phrasing in tasks.CAPITAL_TRAIN_PHRASINGS[:2]
    ]
    colours = ("red", "blue", "green")
    for i in range((N_ROWS - N_PLANTED) // 2):
        rows.append({"prompt": f"Paint box {i}.", "completion": f"It is {colours[i % 3]} now."})
        rows.append({"prompt": f"Close door {i}, please.", "completion": "Done. It is shut."})
    return rows


def eval_rows():
    """The capitals in question, asked in another way."""
    return [
        {
            "prompt": tasks.CAPITAL_EVAL_PHRASINGS[0].format(c=country.name),
            "completion": country.capital,
        }
        for country in tasks.COUNTRIES[: N_PLANTED // 2]
    ]


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A run folder as a user has it: ``base``, ``run/adapter``, ``train``, ``eval``."""
    from gradian_core.demo.finetune import finetune

    folder = tmp_path_factory.mktemp("tiny")
    rows = train_rows()
    run = finetune(MODEL_FOLDER, rows, folder / "run", epochs=2, lr=3e-3, r=4, batch_size=4)
    return SimpleNamespace(
        folder=folder,
        base=MODEL_FOLDER,
        run=run,
        adapter=run / "adapter",
        rows=rows,
        train=write_rows(folder / "train.jsonl", rows),
        eval_rows=eval_rows(),
        eval=write_rows(folder / "eval.jsonl", eval_rows()),
    )


@pytest.fixture(scope="session")
def make_config(tiny):
    """Return a config of the tiny run; sections as dicts, ``None`` leaves a key out."""

    def make(cache, **changes):
        values = {
            "base_model": str(tiny.base),
            "adapter_path": str(tiny.adapter),
            "dataset": str(tiny.train),
            "eval_dataset": str(tiny.eval),
            "cache_dir": str(cache),
            "device": "cpu",
            **changes,
        }
        return Config.model_validate({k: v for k, v in values.items() if v is not None})

    return make


@pytest.fixture(scope="session")
def warm(tiny, make_config, tmp_path_factory):
    """The first attribution of the tiny run: its config, report and cache."""
    from gradian_core.flows.attribute import attribute

    cache = tmp_path_factory.mktemp("warm")
    config = make_config(cache)
    return SimpleNamespace(cache=cache, config=config, report=attribute(config))


@pytest.fixture
def no_model(monkeypatch):
    """Make loading weights an error."""

    def refuse(*_args, **_kwargs):
        raise AssertionError("model weights were loaded")

    monkeypatch.setattr("gradian_core.model.load.load_model", refuse)


@pytest.fixture
def adapter_copy(tiny, tmp_path):
    """A copy of the adapter to be spoiled."""
    return shutil.copytree(tiny.adapter, tmp_path / "spoiled")


@pytest.fixture(scope="session")
def same_scores():
    """Compare two reports' scores relative to the largest."""

    def compare(one, other, tolerance):
        a, b = one.scores.score, other.scores.score
        assert np.abs(a).max() > 0
        return np.abs(a - b).max() <= tolerance * np.abs(a).max()

    return compare


@pytest.fixture(scope="session")
def write():
    """Write rows as JSON lines."""
    return write_rows


@pytest.fixture(scope="session")
def built():
    """Ids of the indexes in a cache: of training rows, of queries, and measured capabilities."""

    def look(cache):
        found = {}
        for kind in ("index", "queries", "evaluations"):
            root = cache / kind
            found[kind] = {path.name for path in root.iterdir()} if root.is_dir() else set()
        return found

    return look


@pytest.fixture
def gradian(capsys, monkeypatch, tmp_path):
    """Run the real command line in an empty folder; gives ``code``, ``out``, ``err``."""
    from gradian_core.cli.app import main

    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    for name in ("GRADIAN_BLOCK", "GRADIAN_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def run(*argv):
        code = main([str(word) for word in argv])
        captured = capsys.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return run


class Box:
    """Sound inputs of ``gradian attribute`` by flag, to be spoiled, and what is needed for it."""

    def __init__(self, tiny, folder, monkeypatch, gradian):
        self.tiny, self.tmp, self.monkeypatch, self._gradian = tiny, folder, monkeypatch, gradian
        self.write = write_rows
        self.cache, self.out = folder / "cache", folder / "out"
        self.flags = {
            "--base-model": tiny.base,
            "--adapter": tiny.adapter,
            "--dataset": tiny.train,
            "--eval-dataset": tiny.eval,
            "--cache-dir": self.cache,
            "--out": self.out,
            "--device": "cpu",
        }

    def run(self, *more, command="attribute"):
        """Run a command on the inputs; ``index`` gets those that it takes."""
        left_out = {"--eval-dataset", "--out"} if command == "index" else set()
        words = [w for pair in self.flags.items() if pair[0] not in left_out for w in pair]
        return self._gradian(command, *words, "--quiet", *more)

    def read_only(self):
        """Refuse to create anything in the cache, also to root, whom permissions do not stop."""
        real_open, real_mkdir = os.open, os.mkdir

        def refuse(path):
            if str(path).startswith(str(self.cache)):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

        def guarded_open(path, flags, *args, **options):
            if flags & os.O_CREAT:
                refuse(path)
            return real_open(path, flags, *args, **options)

        def guarded_mkdir(path, *args, **options):
            refuse(path)
            return real_mkdir(path, *args, **options)

        self.monkeypatch.setattr(os, "open", guarded_open)
        self.monkeypatch.setattr(os, "mkdir", guarded_mkdir)


@pytest.fixture
def box(tiny, tmp_path, monkeypatch, gradian):
    return Box(tiny, tmp_path, monkeypatch, gradian)


@pytest.fixture(scope="session")
def leftovers():
    """List files that a stopped run must not leave: half-written, or as if it had finished."""
    bad = {"manifest.json", "index.h5", "report.json", "report.md", "scores.csv", "run.json"}

    def look(folder):
        return [
            path
            for path in folder.rglob("*")
            if path.is_file()
            and (path.name in bad or path.name.startswith(".") or path.suffix == ".partial")
        ]

    return look
