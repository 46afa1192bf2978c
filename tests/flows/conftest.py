"""One small fine-tune of the embedded model, shared by all tests of the flows.

Wrong capitals hide among rows that teach something else, so the capitals regress. Nothing here
is taken from the demo's own data set, which may be tuned.
"""

from __future__ import annotations

import json
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
