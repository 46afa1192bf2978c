"""A second engine is a second opinion only if it computes something else."""

import pytest

from gradian_core.config.models import EngineSection
from gradian_core.flows.attribute import attribute


def found(report, name):
    return [f for f in report.findings if f.id == f"attribution.{name}"]


@pytest.mark.parametrize(
    ("values", "second"),
    [
        ({}, "datainf"),
        ({"name": "datainf"}, "graddot"),
        ({"name": "graddot"}, "datainf"),
        ({"name": "tracin"}, "datainf"),
        ({"name": "theirs"}, "datainf"),
        ({"name": "graddot", "cross_check": "graddot"}, "graddot"),
        ({"name": "graddot", "cross_check": None}, None),
    ],
)
def test_the_default_is_an_engine_of_another_kind(values, second):
    assert EngineSection.model_validate(values).cross_check == second


@pytest.mark.parametrize("name", ["graddot", "tracin"])
def test_an_engine_compared_with_its_like_confirms_nothing(warm, make_config, name):
    engine = {"name": name, "cross_check": "graddot"}
    report = attribute(make_config(warm.cache, engine=engine))
    assert report.engine.agreement.spearman == pytest.approx(1.0)
    assert not report.engine.agreement.independent
    assert len(found(report, "cross_check_not_independent")) == 1
    assert "nothing confirms the ranking" in report.headline
    assert "confirms the ranking (" not in report.headline
    titles = [f.title for f in found(report, "engine_caveat")]
    assert len({title.split(": ", 1)[1] for title in titles}) == len(titles)


def test_the_default_pair_is_independent(warm, make_config):
    assert warm.report.engine.agreement.independent
    report = attribute(make_config(warm.cache, engine={"name": "graddot"}))
    assert report.engine.agreement.engine == "datainf"
    assert report.engine.agreement.independent


def test_settings_that_the_engine_does_not_take_are_said(warm, make_config):
    assert not found(warm.report, "ignored_setting")
    engine = {
        "name": "datainf",
        "normalize_query": True,
        "options": {"tracin": {"learning_rate": 1.0}},
    }
    (told,) = found(attribute(make_config(warm.cache, engine=engine)), "ignored_setting")
    assert told.evidence["settings"] == {
        "engine.normalize_query": True,
        "engine.options.tracin": {"learning_rate": 1.0},
    }
    assert "graddot, the cross-check, takes engine.normalize_query." in told.detail
    engine = {
        "name": "datainf",
        "cross_check": "tracin",
        "lambda_override": 1.0,
        "lambda_scale": 0.2,
        "options": {"tracin": {"learning_rate": 1.0}},
    }
    report = attribute(make_config(warm.cache, engine=engine))
    assert not found(report, "ignored_setting")
    assert any("lambda_scale has no effect" in f.title for f in report.findings)
