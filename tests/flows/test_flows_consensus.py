"""The stage of the consensus, on a real model."""

from __future__ import annotations

import numpy as np
import pytest

from gradian_core.attribution.agreement import agreement
from gradian_core.flows.attribute import attribute
from gradian_core.report.model import Report

ENGINES = (
    ({"form": "cosine", "alphas": [1.0], "signal": "target"}, "max"),
    ({"form": "adam", "alphas": [0.5], "signal": "divergence"}, "top3"),
    ({"form": "acos", "alphas": [0.25, 0.5, 0.75, 1.0], "signal": "target"}, "max"),
)


@pytest.fixture(scope="module")
def asked(warm, make_config):
    return warm.report


def test_it_is_what_the_engines_say_one_by_one(asked, warm, make_config):
    found = asked.consensus
    totals = []
    for options, aggregation in ENGINES:
        config = make_config(
            warm.cache,
            engine={"name": "path", "cross_check": None, "options": {"path": options}},
            evaluation={"aggregation": aggregation},
        )
        totals.append(attribute(config).scores.score)
    for pair in found.pairs:
        one, two = (totals[place] for place in pair.engines)
        # the order in which equal scores are summed up differs, so ranks at the border may too
        assert pair.top_k_overlap == pytest.approx(agreement(one, two, found.top_k).overlap)
    assert found.overlap == pytest.approx(np.mean([pair.top_k_overlap for pair in found.pairs]))
    tops = [set(np.argsort(total)[: found.top_k].tolist()) for total in totals]
    assert {row.row for row in found.accused} == set.intersection(*tops)
    assert found.n_accused == len(found.accused)
    assert [row.mean_rank for row in found.accused] == sorted(r.mean_rank for r in found.accused)


def test_planted_rows_are_what_all_accuse(asked):
    # 24 rows of 60 are planted, so each engine fills its top 6 with another choice of them
    found = asked.consensus
    assert (found.top_k, found.chance) == (6, 0.1)
    assert found.overlap > 2 * found.chance
    assert found.n_accused > 0
    assert all(row.row < 24 for row in found.accused)
    (finding,) = (f for f in asked.findings if f.id.startswith("attribution.consensus_"))
    assert finding.id == f"attribution.consensus_{found.verdict}"
    assert finding.example_ids == tuple(row.id for row in found.accused)


def test_the_ranking_is_not_touched(asked, warm, make_config):
    without = attribute(make_config(warm.cache, engine={"consensus": False}))
    np.testing.assert_array_equal(asked.scores.score, without.scores.score)
    assert without.consensus is None
    assert asked.provenance.result["id"] != without.provenance.result["id"]


def test_it_comes_back_from_the_file(asked, tmp_path):
    from gradian_core.plugins.registry import load_registry

    for name in ("json", "csv", "md"):
        load_registry().create("sink", name).write(asked, tmp_path)
    assert Report.load(tmp_path).consensus == asked.consensus
    text = (tmp_path / "report.md").read_text()
    assert "## Consensus of unlike engines" in text
    assert f"Verdict: `{asked.consensus.verdict}`" in text


def test_without_eval_data_there_is_nothing_to_agree_on(warm, make_config):
    config = make_config(warm.cache, eval_dataset=None, engine={"consensus": True})
    report = attribute(config)
    assert report.consensus is None
    assert [(n.what, n.why) for n in report.not_done] == [
        ("consensus of unlike engines", "there is no eval data set")
    ]
