"""How the query is built from what was lost."""

import numpy as np
import pytest

from gradian_core.data.encode import with_answer
from gradian_core.data.files import load_dataset
from gradian_core.errors import UsageError
from gradian_core.flows.attribute import attribute
from gradian_core.flows.evaluate import measure_capability
from gradian_core.flows.index import encode_training_data
from gradian_core.flows.queries import QueryPlanner
from gradian_core.flows.session import Session
from gradian_core.flows.tools import resolve_tools
from gradian_core.progress import NoProgress


def ids(report):
    return {finding.id for finding in report.findings}


@pytest.fixture
def plan(tiny, make_config, warm):
    """Return the query plan for a setting of section ``evaluation``."""

    def make(eval_dataset=None, **evaluation):
        changes = {} if eval_dataset is None else {"eval_dataset": str(eval_dataset)}
        session = Session(make_config(warm.cache, evaluation=evaluation, **changes), NoProgress())
        tools = resolve_tools(session)
        measured = measure_capability(session, tools.metric, tools.metric_spec, name="c")
        encoded = encode_training_data(session)
        return measured, QueryPlanner(session, measured, tools.metric_spec, encoded).plan().plan

    return make


def test_a_contrast_is_right_minus_said_for_what_was_lost(tiny, plan):
    measured, queries = plan()
    lost = [i for i, item in enumerate(measured.items) if item.regressed]
    assert queries.items == tuple(lost)
    eval_data = load_dataset(tiny.eval)
    right = [with_answer(eval_data[i], tiny.eval_rows[i]["completion"]) for i in lost]
    said = [with_answer(eval_data[i], measured.items[i].tuned_output) for i in lost]
    assert queries.examples == tuple(right + said)
    q = len(lost)
    assert np.array_equal(queries.combination, np.hstack([np.eye(q), -np.eye(q)]))


def test_a_target_is_right_alone(plan):
    measured, queries = plan(query_signal="target")
    assert queries.signal == "target"
    assert [example.answer for example in queries.examples] == [
        measured.items[i].reference for i in measured.flipped
    ]
    assert np.array_equal(queries.combination, np.eye(len(measured.flipped)))


def test_scores_are_linear_in_the_query(warm, make_config, write, tiny, tmp_path):
    """The contrast is the score of the right answer minus the score of what was said."""
    item = next(item for item in warm.report.capability.items if item.regressed)

    def scores(answer, signal):
        data = write(tmp_path / "one.jsonl", [{"prompt": item.prompt, "completion": answer}])
        evaluation = {"query_signal": signal}
        engine = {"name": "graddot", "cross_check": None}
        config = make_config(
            warm.cache, eval_dataset=str(data), evaluation=evaluation, engine=engine
        )
        return attribute(config).scores.score

    right = scores(item.reference, "target")
    said = scores(item.tuned_output, "target")
    both = scores(item.reference, "contrastive")
    assert both == pytest.approx(right - said, rel=1e-5, abs=1e-6 * np.abs(right).max())


def test_auto_with_a_likelihood_is_a_target_and_says_so(warm, make_config):
    report = attribute(make_config(warm.cache, evaluation={"metric": "loglik"}))
    assert report.query.signal == "target"
    assert "generates no answer" in report.query.why
    assert "attribution.proxy_metric" in ids(report)
    assert report.capability.items[0].tuned_output is None


def test_a_contrast_without_answers_is_refused_before_any_work(make_config, no_model, tmp_path):
    config = make_config(
        tmp_path / "cache", evaluation={"metric": "loglik", "query_signal": "contrastive"}
    )
    with pytest.raises(UsageError, match="contrastive needs generated answers") as caught:
        attribute(config)
    assert "contains" in caught.value.hint


def test_forbidden_markers_take_the_base_answer_for_right(plan, write, tmp_path, tiny, warm):
    said = {item.tuned_output for item in warm.report.capability.items if item.regressed}
    rows = [{**row, "completion": "|".join(sorted(said))} for row in tiny.eval_rows]
    measured, queries = plan(write(tmp_path / "not.jsonl", rows), metric="not_contains")
    assert measured.flipped
    answers = [example.answer for example in queries.examples]
    q = len(measured.flipped)
    assert answers[:q] == [measured.items[i].base_output for i in measured.flipped]
    assert answers[q:] == [measured.items[i].tuned_output for i in measured.flipped]


def test_where_nothing_was_lost_all_items_are_asked_about(plan, tiny, write, tmp_path):
    rows = [{"prompt": "Say hello.", "completion": "Nobody would say this."}] * 2
    measured, queries = plan(write(tmp_path / "e.jsonl", rows))
    assert measured.flipped == ()
    assert queries.items == (0, 1)
