"""Which settings reach which plugin."""

import pytest
from pydantic import BaseModel

from gradian_core.config.models import Config
from gradian_core.errors import UsageError
from gradian_core.plugins.options import (
    clusterer_options,
    engine_options,
    ignored_engine_options,
    metric_options,
    refuse_unknown_names,
)
from gradian_core.plugins.registry import load_registry


class Damped(BaseModel):
    lambda_scale: float = 0.1
    seed: int = 0
    extra_iterations: int = 1


CONFIG = Config.model_validate(
    {
        "seed": 7,
        "engine": {
            "lambda_scale": 0.5,
            "normalize_query": True,
            "options": {"mine": {"extra_iterations": 3}, "other": {"x": 1}},
        },
        "clustering": {"n_clusters": 3},
    }
)


def test_an_engine_gets_the_shared_settings_that_it_declares():
    assert engine_options(CONFIG, "another", Damped) == {"lambda_scale": 0.5, "seed": 7}


def test_its_own_options_are_added_and_win():
    own = {"lambda_scale": 2.0, "extra_iterations": 3}
    config = Config.model_validate({"engine": {"options": {"mine": own}}})
    assert engine_options(config, "mine", Damped) == {"seed": 1234, **own}


def test_what_an_engine_is_not_handed_is_listed():
    assert ignored_engine_options(CONFIG, "mine", Damped) == {
        "engine.normalize_query": True,
        "engine.options.other": {"x": 1},
    }
    assert "engine.lambda_scale" in ignored_engine_options(CONFIG, "mine", None)
    # defaults change nothing, and core's own settings always count
    plain = Config.model_validate({"engine": {"normalize_query": False, "memory_limit_mb": 7}})
    assert ignored_engine_options(plain, "mine", Damped) == {}


def test_options_of_an_engine_without_a_model_are_left_for_the_registry_to_refuse():
    assert engine_options(CONFIG, "other", None) == {"x": 1}
    assert engine_options(CONFIG, "another", None) == {}


def test_names_of_plugins_are_not_settings():
    class Greedy(BaseModel):
        name: str = ""
        cross_check: str = ""
        options: dict = {}
        method: str = ""

    assert engine_options(CONFIG, "greedy", Greedy) == {}
    assert clusterer_options(CONFIG, "greedy", Greedy) == {}


def test_a_clusterer_gets_what_it_declares():
    class Means(BaseModel):
        n_clusters: int = 8
        seed: int = 0

    assert clusterer_options(CONFIG, "means", Means) == {"n_clusters": 3, "seed": 7}
    assert clusterer_options(CONFIG, "none", None) == {}


def test_own_options_of_clusterers_and_metrics():
    config = Config.model_validate(
        {
            "clustering": {"n_clusters": 3, "options": {"mine": {"words": 2, "n_clusters": 5}}},
            "evaluation": {"options": {"last_number": {"tolerance": 0.1}}},
        }
    )

    class Means(BaseModel):
        n_clusters: int = 8
        words: int = 1

    assert clusterer_options(config, "mine", Means) == {"n_clusters": 5, "words": 2}
    assert clusterer_options(config, "kmeans", Means) == {"n_clusters": 3}
    assert metric_options(config, "last_number") == {"tolerance": 0.1}
    assert metric_options(config, "contains") == {}


@pytest.mark.parametrize("section", ["clustering", "evaluation"])
def test_options_of_what_is_not_installed_are_refused(section):
    config = Config.model_validate({section: {"options": {"containz": {}}}})
    with pytest.raises(UsageError, match=r"There is no .* 'containz'"):
        refuse_unknown_names(config, load_registry())
    refuse_unknown_names(CONFIG, load_registry())
