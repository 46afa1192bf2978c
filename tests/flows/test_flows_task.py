"""What an engine is handed: one order, gradients on demand, and nothing computed unasked."""

from __future__ import annotations

import numpy as np
import pytest

from gradian_core.errors import CannotRunError, PluginError, UsageError
from gradian_core.flows.attribute import attribute
from gradian_core.flows.evaluate import measure_capability
from gradian_core.flows.index import encode_training_data
from gradian_core.flows.points import Points
from gradian_core.flows.queries import QueryPlanner
from gradian_core.flows.session import Session
from gradian_core.flows.tools import resolve_tools
from gradian_core.hookspecs import hookimpl
from gradian_core.plugins.record import Provided
from gradian_core.plugins.registry import Registry, load_registry
from gradian_core.progress import NoProgress
from gradian_core.specs import EngineSpec


class Lengths:
    """A text engine: longer rows degrade."""

    def score(self, task):
        return -np.tile([float(len(row.full_text)) for row in task.examples], (task.q, 1))

    def caveats(self, task):
        return [f"It looked at {task.n} rows."]


class Cosine:
    """What graddot does on unit vectors, written down independently."""

    def score(self, task):
        point = task.gradients()
        total = 0.0
        for block, queries in point.blocks():
            rows = np.vstack([gradients for _, gradients in block.chunks()]).astype(np.float64)
            total = total + queries @ rows.T
        task.note("A note of the engine.")
        return total / point.row_norms / point.context.query_norms[:, None]

    def caveats(self, task):
        return ()


class Broken:
    answer: object = None

    def score(self, task):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def caveats(self, task):
        return ()


class Declared:
    @hookimpl
    def gradian_engines(self):
        for kind in (Lengths, Cosine, Broken):
            yield EngineSpec(
                name=kind.__name__.lower(),
                summary="for a test",
                factory=f"{__name__}:{kind.__name__}",
                needs="text" if kind is Lengths else "gradients",
            )


@pytest.fixture
def installed(monkeypatch):
    """The engines above, found like any plugin's."""
    registry = load_registry()
    some = next(iter(registry.engines.values()))
    claims = dict(registry.claims)
    for spec in Declared().gradian_engines():
        claims["engine", spec.name] = (Provided(spec=spec, plugin=some.plugin),)
    ours = Registry(plugins=registry.plugins, notes=registry.notes, claims=claims)
    monkeypatch.setattr("gradian_core.flows.session.load_registry", lambda _block: ours)


@pytest.fixture
def points(warm):
    """The points of the warm run."""
    session = Session(warm.config, NoProgress())
    tools = resolve_tools(session)
    measured = measure_capability(session, tools.metric, tools.metric_spec, name="c")
    encoded = encode_training_data(session)
    return Points(session, encoded, QueryPlanner(session, measured, tools.metric_spec, encoded))


@pytest.mark.usefixtures("installed")
def test_a_text_engine_takes_no_gradient(make_config, tmp_path, built, tiny, warm):
    engine = {"name": "lengths", "cross_check": None, "consensus": False}
    report = attribute(make_config(tmp_path, engine=engine, evaluation={"aggregation": "mean"}))
    assert built(tmp_path)["index"] == built(tmp_path)["queries"] == set()
    wanted = [-float(len(f"{row['prompt']}\n{row['completion']}")) for row in tiny.rows]
    assert report.scores.score.tolist() == wanted
    assert report.provenance.index == {}
    assert report.provenance.result["id"] != warm.report.provenance.result["id"]
    assert any("lengths: It looked at 60 rows." in found.title for found in report.findings)
    assert report.engine.agreement is None


@pytest.mark.usefixtures("installed", "no_model")
def test_a_task_engine_beside_a_block_engine(make_config, warm):
    engine = {"name": "cosine", "cross_check": "graddot", "normalize_query": True}
    config = make_config(warm.cache, engine=engine, grads={"normalization": "l2"})
    report = attribute(config)
    same = attribute(
        make_config(warm.cache, engine={**engine, "name": "graddot"}, grads={"normalization": "l2"})
    )
    np.testing.assert_allclose(report.scores.score, same.scores.score, rtol=1e-6, atol=1e-12)
    assert "A note of the engine." in report.notes
    assert report.provenance.index == warm.report.provenance.index


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "not scores"),
        (np.zeros((1, 2)), r"shape \(1, 2\)"),
        (np.full((1, 1), "x"), "not scores"),
        (ZeroDivisionError("oops"), "ZeroDivisionError: oops"),
    ],
)
def test_an_engine_that_breaks_its_contract_is_named(
    make_config, warm, monkeypatch, answer, message
):
    monkeypatch.setattr(Broken, "answer", answer)
    config = make_config(warm.cache, engine={"name": "broken", "cross_check": None})
    with pytest.raises(PluginError, match=message) as caught:
        attribute(config)
    assert "gradian-ml" in caught.value.owner


@pytest.mark.usefixtures("installed")
def test_not_a_number_and_errors_for_people(make_config, warm, monkeypatch, points):
    task = points.task("broken", "x")
    config = make_config(warm.cache, engine={"name": "broken", "cross_check": None})
    monkeypatch.setattr(Broken, "answer", np.full((task.q, task.n), np.inf))
    with pytest.raises(PluginError, match="not finite"):
        attribute(config)
    monkeypatch.setattr(Broken, "answer", CannotRunError("too big"))
    with pytest.raises(CannotRunError, match="too big"):
        attribute(config)


@pytest.mark.usefixtures("no_model")
def test_one_order(points):
    task = points.task("graddot", "x")
    point = task.gradients()
    assert task.n == len(task.examples) == len(task.tokens) == len(point.row_norms)
    assert [row.id for row in task.examples] == list(task.tokens.ids)
    places = point.index.row_numbers
    assert [row.row for row in task.examples] == places.tolist()
    assert [row.id for row in task.examples[3:5]] == list(task.tokens.ids[3:5])
    assert (np.diff(task.tokens.lengths) <= 0).all()
    assert task.q == len(task.items) == len(task.query_rows().weights)
    assert all(item.tuned_output != item.base_output for item in task.items)
    squares = sum((queries**2).sum(axis=1) for _, queries in point.blocks())
    np.testing.assert_allclose(np.sqrt(squares), point.context.query_norms, rtol=1e-12)
    squares = sum(block.squared_norms for block, _ in point.blocks())
    np.testing.assert_allclose(np.sqrt(squares), point.row_norms, rtol=1e-12)


@pytest.mark.usefixtures("no_model")
def test_a_point_is_opened_once(points):
    task = points.task("graddot", "x")
    assert task.gradients() is points.task("datainf", "x").gradients(adapter_scale=1.0)
    assert task.gradients() is task.gradients(signal=points.session.config.evaluation.query_signal)
    (final,) = task.checkpoints
    assert task.gradients(checkpoint=final) is task.gradients()


def test_workdirs_are_addressed_by_content(points):
    task = points.task("graddot", "x 1")
    one = task.workdir({"a": 1})
    assert one.is_dir()
    assert one == task.workdir({"a": 1})
    others = [task.workdir({"a": 2}), points.task("graddot", "x 2").workdir({"a": 1})]
    assert len({one, *others}) == 3


@pytest.mark.parametrize("scale", [-0.1, float("inf"), float("nan")])
def test_scales_that_are_none(points, scale):
    with pytest.raises(UsageError, match="adapter scale"):
        points.task("graddot", "x").gradients(adapter_scale=scale)


@pytest.mark.usefixtures("no_model")
def test_queries_are_the_same_under_every_signal(points):
    task = points.task("graddot", "x")
    rows = {s: task.query_rows(s) for s in ("target", "contrastive", "divergence")}
    assert {len(found.weights) for found in rows.values()} == {task.q}
    assert set(rows["divergence"].tokens.supervised_counts.tolist()) == {1}
    with pytest.raises(UsageError, match="no query signal 'targt'"):
        task.query_rows("targt")
