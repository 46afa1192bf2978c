"""Baselines that need the model, against a loop over rows of one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gradian_core.errors import CannotRunError
from gradian_core.flows.attribute import attribute
from gradian_core.flows.evaluate import measure_capability
from gradian_core.flows.index import encode_training_data
from gradian_core.flows.points import Points
from gradian_core.flows.queries import QueryPlanner
from gradian_core.flows.session import Session
from gradian_core.flows.tools import resolve_tools
from gradian_core.model.load import load_model
from gradian_core.progress import NoProgress
from gradian_engines import _repsim
from gradian_engines._repsim import RepSim, RepSimSettings
from gradian_engines._rowwise import Loss, LossDrop, LossDropSettings


@pytest.fixture(scope="module")
def task(warm):
    session = Session(warm.config, NoProgress())
    tools = resolve_tools(session)
    measured = measure_capability(session, tools.metric, tools.metric_spec, name="c")
    encoded = encode_training_data(session)
    points = Points(session, encoded, QueryPlanner(session, measured, tools.metric_spec, encoded))
    return points.task("repsim", "x")


@pytest.fixture(scope="module")
def model(warm):
    return load_model(warm.config).model


def forward(model, tokens, row):
    ids, mask = tokens.row(row)
    with torch.no_grad(), model.disable_adapter():
        out = model(input_ids=torch.tensor(ids.astype(np.int64))[None], output_hidden_states=True)
    return out.logits[0], out.hidden_states[-1][0].double().numpy(), ids, mask


@pytest.mark.parametrize("of", ["prompt", "answer"])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_repsim_is_a_cosine_of_the_base_models_states(task, model, of, batch_size):
    found = RepSim(RepSimSettings(of=of, batch_size=batch_size)).score(task)
    assert found.shape == (task.q, task.n)

    def state(tokens, row):
        _, hidden, _, mask = forward(model, tokens, row)
        if of == "answer":
            return hidden[mask].mean(axis=0)
        return hidden[np.flatnonzero(mask)[0] - 1]

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    queries = task.query_rows("target").tokens
    for i in (0, task.q - 1):
        expected = [cosine(state(queries, i), state(task.tokens, j)) for j in range(task.n)]
        np.testing.assert_allclose(-found[i], expected, rtol=1e-4, atol=1e-5)


def test_a_row_without_a_prompt_is_told(task):
    mask = np.array([False, True, True])
    assert RepSim(RepSimSettings())._pick(mask) is None
    assert RepSim(RepSimSettings(of="answer"))._pick(mask).tolist() == mask.tolist()
    # the prompt of a conversation is all that stands before the last answer
    turns = np.array([False, False, True, False, False, True, True, False])
    assert np.flatnonzero(RepSim(RepSimSettings())._pick(turns)).tolist() == [4]


def test_states_that_are_not_finite_are_refused(task, monkeypatch):
    plain = _repsim._body

    def spoilt(model):
        def body(**inputs):
            out = plain(model)(**inputs)
            out.last_hidden_state[:] = float("nan")
            return out

        return body

    monkeypatch.setattr(_repsim, "_body", spoilt)
    with pytest.raises(CannotRunError, match="NaN"):
        RepSim(RepSimSettings()).score(task)


def test_a_model_that_hides_its_states_is_refused():
    class Bare:
        @property
        def base_model(self):
            return self

    with pytest.raises(CannotRunError, match="Bare does not give its hidden states"):
        _repsim._body(Bare())


def test_lossdrop_is_what_the_fine_tune_gained(task, model):
    found = LossDrop(LossDropSettings(batch_size=7)).score(task)
    tuned = -Loss().score(task)[0]
    for row in (0, 5, task.n - 1):
        logits, _, ids, mask = forward(model, task.tokens, row)
        places = np.flatnonzero(mask)
        targets = torch.tensor(ids[places].astype(np.int64))
        base = torch.nn.functional.cross_entropy(logits[places - 1], targets).item()
        assert found[0, row] == pytest.approx(tuned[row] - base, rel=1e-4, abs=1e-5)
    # the fine-tune learned its rows, and that is what it is accused of
    assert (found < 0).mean() > 0.9


def test_they_stand_beside_an_engine_in_the_report(make_config, warm):
    names = ["bm25", "gradnorm", "loss", "lossdrop", "random", "repsim", "tfidf"]
    report = attribute(make_config(warm.cache, engine={"also": names}))
    beside = {entry.engine: entry for entry in report.engine.compared}
    assert set(names) <= set(beside)
    assert beside["bm25"].spearman != beside["random"].spearman
