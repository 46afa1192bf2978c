"""How the query is built from what was lost."""

import numpy as np
import pytest

from gradian_core.data.encode import encode, with_answer
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
        evaluation = {"query_signal": "auto", **evaluation}
        session = Session(make_config(warm.cache, evaluation=evaluation, **changes), NoProgress())
        tools = resolve_tools(session)
        measured = measure_capability(session, tools.metric, tools.metric_spec, name="c")
        encoded = encode_training_data(session)
        return measured, QueryPlanner(session, measured, tools.metric_spec, encoded).plan().plan

    return make


@pytest.fixture
def rows(tiny, make_config, warm):
    """Return the tokens and loss mask of answers to eval items, by position."""
    session = Session(make_config(warm.cache), NoProgress())

    def make(answers, data=tiny.eval):
        data = load_dataset(data)
        examples = [with_answer(data[i], text) for i, text in answers]
        tokens = encode(examples, session.tokenizer, max_seq_length=999, supervise="last").tokens
        return content(tokens)

    return make


def content(tokens):
    return [tuple(part.tolist() for part in tokens.row(i)) for i in range(len(tokens))]


def test_a_contrast_is_right_minus_said_for_what_was_lost(tiny, plan, rows):
    measured, queries = plan(positive="reference")
    assert queries.signal == "contrastive"
    lost = [i for i, item in enumerate(measured.items) if item.regressed]
    assert queries.items == tuple(lost)
    right = [(i, tiny.eval_rows[i]["completion"]) for i in lost]
    said = [(i, measured.items[i].tuned_output) for i in lost]
    assert content(queries.tokens) == rows(right + said)
    assert queries.n_given == len(lost)
    q = len(lost)
    assert np.array_equal(queries.combination, np.hstack([np.eye(q), -np.eye(q)]))


def test_a_target_is_what_the_base_model_said_alone(plan, rows):
    measured, queries = plan(query_signal="target")
    assert queries.signal == "target"
    assert all(measured.items[i].base_score == 1.0 for i in measured.flipped)
    assert content(queries.tokens) == rows(
        [(i, measured.items[i].base_output) for i in measured.flipped]
    )
    assert queries.n_given == 0
    assert np.array_equal(queries.combination, np.eye(len(measured.flipped)))


def test_scores_are_linear_in_the_query(warm, make_config, write, tiny, tmp_path):
    """The contrast is the score of the right answer minus the score of what was said."""
    item = next(item for item in warm.report.capability.items if item.regressed)

    def scores(answer, signal):
        data = write(tmp_path / "one.jsonl", [{"prompt": item.prompt, "completion": answer}])
        evaluation = {"query_signal": signal, "aggregation": "mean"}
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
    report = attribute(
        make_config(warm.cache, evaluation={"metric": "loglik", "query_signal": "auto"})
    )
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


def test_forbidden_markers_take_the_base_answer_for_right(plan, write, tmp_path, tiny, warm, rows):
    said = {item.tuned_output for item in warm.report.capability.items if item.regressed}
    data = write(
        tmp_path / "not.jsonl",
        [{**row, "completion": "|".join(sorted(said))} for row in tiny.eval_rows],
    )
    settings = {"metric": "not_contains", "positive": "reference", "query_signal": "contrastive"}
    measured, queries = plan(data, **settings)
    assert measured.flipped
    right = [(i, measured.items[i].base_output) for i in measured.flipped]
    wrong = [(i, measured.items[i].tuned_output) for i in measured.flipped]
    assert content(queries.tokens) == rows(right + wrong, data)


def test_where_nothing_was_lost_all_items_are_asked_about(plan, tiny, write, tmp_path):
    rows = [{"prompt": "Say hello.", "completion": "Nobody would say this."}] * 2
    measured, queries = plan(write(tmp_path / "e.jsonl", rows))
    assert measured.flipped == ()
    assert queries.items == (0, 1)


def test_every_signal_has_the_same_queries(plan):
    found = {s: plan(query_signal=s)[1] for s in ("target", "contrastive", "divergence")}
    assert len({queries.items for queries in found.values()}) == 1
    assert len({len(queries.combination) for queries in found.values()}) == 1
    parts = found["divergence"]
    assert parts.tokens.supervised_counts.tolist() == [1] * len(parts.tokens)
    assert parts.n_target == 0
    q = len(parts.items)
    for query in range(q):
        right, said = (parts.tokens.row(query + at)[0] for at in (0, q))
        assert right[:-1].tolist() == said[:-1].tolist()
        assert right[-1] != said[-1]


def test_divergence_without_answers_is_a_target_with_a_note(warm, make_config):
    config = make_config(warm.cache, evaluation={"metric": "loglik", "query_signal": "divergence"})
    report = attribute(config)
    assert report.query.signal == "target"
    assert any("target and not divergence" in note for note in report.notes)
    assert report.query.uptake is None


def test_uptake_decides_and_is_reported(warm, make_config):
    report = attribute(make_config(warm.cache, evaluation={"query_signal": "auto"}))
    uptake = report.query.uptake
    assert uptake == warm.report.query.uptake
    assert uptake.n_items == report.capability.n_flipped
    assert uptake.share >= 0.5
    assert f"uptake {uptake.share:.2f}" in report.query.why
    (finding,) = [f for f in report.findings if f.id == "attribution.learned_from_rows"]
    assert {int(name.rpartition("-")[2]) for name in finding.example_ids} <= set(range(24))
    assert report.provenance.result["query_signal"] == "contrastive"
    assert report.provenance.result["evaluation"]["positive"] == "base"


def test_what_no_row_teaches_was_displaced(warm, make_config, tiny, write, tmp_path):
    rows = [
        {**row, "completion": "Nothing."} if row["completion"] == "Belgrade" else row
        for row in tiny.rows
    ]
    report = attribute(
        make_config(
            warm.cache,
            dataset=str(write(tmp_path / "t.jsonl", rows)),
            evaluation={"query_signal": "auto"},
        )
    )
    assert report.query.signal == "target"
    assert "not taught" in report.query.why
    assert report.query.uptake.share < 0.5
    assert "attribution.displaced_not_learned" in ids(report)
    assert "attribution.learned_from_rows" not in ids(report)
