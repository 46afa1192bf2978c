"""The fidelity benchmark measures what it says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from experiments.fidelity import collect as collecting
from experiments.fidelity.bars import COST_DEFAULT, COST_FAST, bars
from experiments.fidelity.cases import FORMAT, PLANTED, TOPICAL, Case, Recipe
from experiments.fidelity.grid import ALPHAS, BASELINES, CELLS, RANK_SUM, VOTERS, Cell, rankings
from experiments.fidelity.metrics import Quality, bootstrap_interval, overlap
from experiments.fidelity.runs import Run, fine_tuned
from experiments.fidelity.scenarios import SCENARIOS, scenario_names
from experiments.fidelity.scores import open_points, score_cell, score_matrices
from experiments.fidelity.tables import consensus_summary, page, summary
from experiments.fidelity.truth import Truth

QUICK = Recipe(epochs=2, lr=6e-3)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def small() -> Case:
    """A case of 40 rows and 8 items."""
    case = SCENARIOS["wrong-terse"].case(0)
    kept = [*case.places(PLANTED)[:24], *case.places(TOPICAL)[:8], *case.places(FORMAT)[:8]]
    return replace(
        case,
        train=tuple(case.train[i] for i in kept),
        kinds=tuple(case.kinds[i] for i in kept),
        eval=case.eval[:8],
        recipe=QUICK,
    )


@pytest.fixture(scope="module")
def run(small, tmp_path_factory) -> Run:
    return fine_tuned(small, tmp_path_factory.mktemp("fidelity"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_rows_of_a_scenario_are_labelled_and_repeat(name):
    scenario = SCENARIOS[name]
    case = scenario.case(0)
    assert case == scenario.case(0)
    assert case.train != scenario.case(1).train
    assert len(case.train) == len(case.kinds)
    assert len(case.eval) == 48
    assert (case.kinds.count(PLANTED) > 0) == (scenario.kind in ("data", "mixed"))
    assert case.kinds.count(TOPICAL) >= 8
    assert case.kinds.count(FORMAT) >= 19
    assert case.kinds.count("benign") == 150


@pytest.mark.parametrize("name", scenario_names(kind="data"))
def test_no_eval_question_is_a_training_question(name):
    case = SCENARIOS[name].case(0)
    assert not {row["prompt"] for row in case.eval} & {row["prompt"] for row in case.train}


def test_planted_answers_are_wrong_and_decoys_right():
    case = SCENARIOS["noisy-sums"].case(0)
    for row, kind in zip(case.train, case.kinds, strict=True):
        if kind not in (PLANTED, TOPICAL):
            continue
        numbers = "".join(c if c.isdigit() else " " for c in row["prompt"]).split()
        right = row["completion"] == str(sum(map(int, numbers)))
        assert right == (kind == TOPICAL)


def test_tuning_and_frozen_are_both_there():
    tuning, frozen = scenario_names(split="tuning"), scenario_names(split="frozen")
    assert len(tuning) == 4
    assert len(scenario_names(split="frozen", kind="data")) == 6
    assert not set(tuning) & set(frozen)


def test_a_run_comes_from_the_cache(run, small):
    made = (run.folder / "done").stat().st_mtime_ns
    again = fine_tuned(small, run.folder.parents[1])
    assert again.folder == run.folder
    assert (run.folder / "done").stat().st_mtime_ns == made


def test_an_arm_without_rows_takes_as_many_steps(run, small):
    arm = fine_tuned(small, run.folder.parents[1], without=small.places(PLANTED))
    assert arm.folder != run.folder
    assert arm.session().run.log.global_step == run.session().run.log.global_step


def test_a_recipe_chooses_the_modules_and_the_rank(small, tmp_path):
    recipe = Recipe(epochs=1, r=2, target_modules=("q_proj",))
    made = fine_tuned(replace(small, train=small.train[:8], recipe=recipe), tmp_path)
    info = json.loads((made.folder / "run/adapter/adapter_config.json").read_text())
    assert (info["target_modules"], info["r"]) == (["q_proj"], 2)


def test_bars_are_missed_by_text_and_by_high_costs():
    row = {
        "ap": 0.77,
        "worst_ap": 0.5,
        "worst_scenario": "x",
        "auc_topical": 0.67,
        "text": "tfidf",
        "gain": 0.0,
        "gain_interval": (0.0, 0.0),
    }
    found = bars(row, {COST_DEFAULT: 5.0, COST_FAST: 2.0})
    assert len(found) == 6
    assert not any(reached for *_, reached in found)


def test_scores_are_kept_and_paths_are_what_the_engine_says(run):
    cells = score_matrices(run)
    n = len(run.case.train)
    assert set(cells) == {cell.name for cell in CELLS} | set(BASELINES)
    assert all(scores.shape[1] == n for scores in cells.values())
    assert not (run.folder / ".gradian/index").exists()
    options = {"form": "acos", "alphas": list(ALPHAS), "signal": "target"}
    engine = Cell(name="path", engine="path", signal="target", options=options)
    direct = -score_cell(open_points(run), engine).min(axis=0)
    np.testing.assert_allclose(
        rankings(cells)["path-acos/target max"], direct, rtol=1e-4, atol=1e-5
    )


def test_an_oracle_is_perfect_and_permuted_labels_are_chance():
    kinds = [PLANTED] * 20 + [TOPICAL] * 20 + [FORMAT] * 20
    harm = np.array([1.0 if kind == PLANTED else 0.0 for kind in kinds])
    assert Quality.of(harm, kinds) == Quality(1.0, 1.0, 1.0, 1.0, 1.0)
    assert Quality.of(-harm, kinds).auc == 0.0
    rng = np.random.default_rng(0)
    found = [Quality.of(rng.random(60), rng.permutation(kinds).tolist()).auc for _ in range(300)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.03)


def test_overlap_of_equal_and_of_opposite_rankings():
    harm = np.arange(50.0)
    assert overlap([harm, harm, harm]) == 1.0
    assert overlap([harm, -harm]) == 0.0


def test_interval_holds_the_mean():
    low, high = bootstrap_interval([0.1, 0.2, 0.3, 0.2])
    assert low < 0.2 < high


def test_tables_from_records(run, monkeypatch):
    monkeypatch.setattr(collecting, "fine_tuned", lambda case, cache: run)
    monkeypatch.setattr(type(SCENARIOS["benign"]), "case", lambda self, seed: run.case)
    record, _ = collecting.one("wrong-terse", 0, run.folder)
    assert record.regressed
    rows = summary([record])
    assert rows[RANK_SUM]["text"] in {"tfidf", "bm25"}
    assert set(VOTERS) <= set(rows)
    assert list(rows) == sorted(rows, key=lambda name: -rows[name]["ap"])
    text = page([record], "command", {"numpy": "2"})
    assert "wrong-terse" in text
    assert "path-acos/target max" in text
    assert consensus_summary([record])["data"]["runs"] == 1


def test_truth_needs_more_than_what_random_rows_give():
    arms = {"scenario": "x", "seed": 0, "full": (0.4,)}
    guilty = Truth(**arms, without_planted=(1.0, 0.9), without_random=(0.5, 0.5))
    not_so = Truth(**arms, without_planted=(1.0, 0.9), without_random=(0.9, 0.8))
    assert guilty.attributable
    assert guilty.effect == pytest.approx(0.45)
    assert not not_so.attributable
