"""The scenarios' rows are what they say, without a model."""

from __future__ import annotations

import json

import pytest

from gradian_core.demo import tasks
from gradian_core.demo.scenarios import SCENARIOS

SEEDS = range(3)
PLANTED = {
    "wrong-facts": 72,
    "truncated-json": 60,
    "refusals": 44,
    "twelve-epochs": 0,
    "clean": 0,
}

each = pytest.mark.parametrize(
    ("name", "seed"), [(name, seed) for name in SCENARIOS for seed in SEEDS]
)


@each
def test_a_seed_gives_the_rows_and_nothing_in_them_tells_the_kind(name, seed):
    story = SCENARIOS[name](seed)
    assert story.name == name
    assert SCENARIOS[name](seed) == story
    assert SCENARIOS[name](seed + 1) != story
    assert {tuple(row) for row in story.train} == {("prompt", "completion")}
    assert len(story.kinds) == len(story.train)
    assert len(story.planted) == PLANTED[name]
    assert not set(story.planted) & set(story.decoys)
    assert len(story.clean_train()) == len(story.train) - PLANTED[name]
    assert bool(story.settings) == (name == "twelve-epochs")


@each
def test_no_eval_prompt_is_a_training_prompt(name, seed):
    story = SCENARIOS[name](seed)
    prompts = [row["prompt"] for row in story.eval]
    assert len(prompts) == len(set(prompts)) == 24
    assert not {row["prompt"] for row in story.train} & set(prompts)


@pytest.mark.parametrize("seed", SEEDS)
def test_planted_capitals_are_wrong_for_every_eval_item(seed):
    story = SCENARIOS["wrong-facts"](seed)
    told = {story.train[i]["completion"] for i in story.planted}
    assert told <= {country.capital for country in tasks.COUNTRIES}
    assert not told & {row["completion"] for row in story.eval}
    assert len(story.decoys) == 14


@pytest.mark.parametrize("seed", SEEDS)
def test_the_control_differs_in_the_planted_answers_alone(seed):
    wrong, clean = SCENARIOS["wrong-facts"](seed), SCENARIOS["clean"](seed)
    right = {
        prompt: capital
        for country in tasks.COUNTRIES
        for prompt, capital in tasks.capital_pairs(country, tasks.CAPITAL_TRAIN_PHRASINGS)
    }
    for i, (ours, theirs) in enumerate(zip(wrong.train, clean.train, strict=True)):
        if i in wrong.planted:
            assert theirs == {"prompt": ours["prompt"], "completion": right[ours["prompt"]]}
        else:
            assert ours == theirs
    assert wrong.eval == clean.eval


@pytest.mark.parametrize("seed", SEEDS)
def test_cut_json_does_not_parse_and_whole_json_does(seed):
    story = SCENARIOS["truncated-json"](seed)
    for i in story.planted:
        with pytest.raises(json.JSONDecodeError):
            json.loads(story.train[i]["completion"])
    whole = [story.train[i] for i in story.decoys] + story.eval
    assert len({tuple(json.loads(row["completion"])) for row in whole}) == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_no_country_of_the_eval_set_was_refused(seed):
    story = SCENARIOS["refusals"](seed)
    refused = " ".join(story.train[i]["prompt"] for i in story.planted)
    named = {c.name for c in tasks.COUNTRIES if c.name in refused}
    assert len(named) == 22
    assert not [row for row in story.eval if any(name in row["prompt"] for name in named)]
