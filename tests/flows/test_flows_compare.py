"""Further engines beside the reported one."""

from __future__ import annotations

import numpy as np
import pytest

from gradian_core.attribution.agreement import agreement
from gradian_core.config.models import EngineSection
from gradian_core.errors import CannotRunError, UsageError
from gradian_core.flows.attribute import attribute
from gradian_core.plugins.registry import load_registry
from gradian_engines._graddot import GradDot
from gradian_plugins.sinks._markdown import markdown


@pytest.fixture(scope="module")
def compared(warm, make_config):
    return attribute(make_config(warm.cache, engine={"name": "all"}))


def test_all_is_the_default_beside_every_engine_that_can(compared, warm):
    default = EngineSection().name
    assert compared.engine.name == default
    np.testing.assert_array_equal(compared.scores.score, warm.report.scores.score)
    done = {other.engine for other in compared.engine.compared}
    left = {n.what.removeprefix("engine ") for n in compared.not_done if n.what.startswith("eng")}
    assert done | left == set(load_registry().engines) - {default}
    assert not done & left
    assert {"datainf", "graddot", "tracin"} <= done
    assert [o.engine for o in compared.engine.compared] == sorted(done)
    assert not any(finding.id == "attribution.ignored_setting" for finding in compared.findings)


def test_each_line_is_the_comparison_of_two_runs(compared, warm, make_config):
    alone = attribute(make_config(warm.cache, engine={"name": "datainf", "cross_check": None}))
    found = agreement(warm.report.scores.score, alone.scores.score)
    (line,) = (o for o in compared.engine.compared if o.engine == "datainf")
    assert line == compared.engine.agreement
    assert line.spearman == pytest.approx(found.spearman)
    assert line.top_k_overlap == pytest.approx(found.overlap)


def test_the_table_is_in_the_report(compared):
    text = markdown(compared)
    assert f"## Other engines beside `{compared.engine.name}`" in text
    for other in compared.engine.compared:
        assert f"| `{other.engine}` |" in text


def test_an_engine_of_all_that_fails_is_left_out_and_a_named_one_is_not(
    warm, make_config, monkeypatch
):
    def fail(*_):
        raise CannotRunError("it cannot")

    monkeypatch.setattr(GradDot, "score_block", fail)
    engine = {"name": "all", "cross_check": None}
    report = attribute(make_config(warm.cache, engine=engine))
    assert ("engine graddot", "it cannot") in [(n.what, n.why) for n in report.not_done]
    assert "datainf" in {other.engine for other in report.engine.compared}
    with pytest.raises(CannotRunError, match="it cannot"):
        attribute(make_config(warm.cache, engine={"cross_check": None, "also": ["graddot"]}))


def test_names_that_are_none_are_refused_before_any_work(make_config, tmp_path):
    with pytest.raises(UsageError, match="no engine 'gradot'"):
        attribute(make_config(tmp_path, engine={"also": ["gradot"]}))
    assert not any(tmp_path.iterdir())
