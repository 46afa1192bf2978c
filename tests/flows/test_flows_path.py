"""Gradients at a scaled adapter, and the path engine, against plain autograd in a loop."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gradian_core.flows.attribute import attribute
from gradian_core.flows.evaluate import measure_capability
from gradian_core.flows.index import encode_training_data
from gradian_core.flows.points import Points
from gradian_core.flows.queries import QueryPlanner
from gradian_core.flows.session import Session
from gradian_core.flows.tools import resolve_tools
from gradian_core.model.load import load_model
from gradian_core.progress import NoProgress

ENGINE = {
    "name": "path",
    "cross_check": None,
    "consensus": False,
    "options": {"path": {"alphas": [0.25, 0.75]}},
}


@pytest.fixture(scope="module")
def setting(make_config, tmp_path_factory):
    """A float64 run, and an own model whose lora_B an oracle scales by hand."""
    config = make_config(
        tmp_path_factory.mktemp("path"),
        dtype="float64",
        engine=ENGINE,
        evaluation={"query_signal": "target"},
    )
    session = Session(config, NoProgress())
    tools = resolve_tools(session)
    measured = measure_capability(session, tools.metric, tools.metric_spec, name="c")
    encoded = encode_training_data(session)
    points = Points(session, encoded, QueryPlanner(session, measured, tools.metric_spec, encoded))
    model = load_model(config).model
    parameters = {name: p for name, p in model.named_parameters() if "lora_" in name}
    start = {name: p.detach().clone() for name, p in parameters.items()}

    def loss(tokens, row):
        ids, mask = tokens.row(row)
        input_ids = torch.tensor(ids.astype(np.int64))[None]
        targets = input_ids[0].masked_fill(~torch.tensor(mask.copy()), -100)
        logits = model(input_ids=input_ids).logits[0]
        return torch.nn.functional.cross_entropy(logits[:-1], targets[1:])

    def move(alpha):
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(start[name] * (alpha if ".lora_B." in name else 1.0))

    def gradients(tokens, alpha):
        """``(rows, parameters)`` float64, module by module with A before B."""
        move(alpha)
        found = [
            np.concatenate(
                [
                    part.reshape(-1).numpy()
                    for part in torch.autograd.grad(loss(tokens, row), list(parameters.values()))
                ]
            )
            for row in range(len(tokens))
        ]
        move(1.0)
        return np.array(found)

    sizes = [p.numel() for p in parameters.values()]
    modules = [name.split(".lora_")[0] for name in parameters]
    starts = np.cumsum([0, *sizes])
    spans = [
        slice(
            starts[modules.index(module)],
            starts[len(modules) - modules[::-1].index(module)],
        )
        for module in dict.fromkeys(modules)
    ]
    return SimpleNamespace(
        config=config,
        points=points,
        loss=loss,
        gradients=gradients,
        spans=spans,
        move=move,
        parameters=parameters,
    )


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
def test_gradients_at_a_scale_are_those_of_scaled_parameters(setting, alpha):
    task = setting.points.task("path", "x")
    point = task.gradients(adapter_scale=alpha)
    G = setting.gradients(task.tokens, alpha)
    V = task.query_rows().weights @ setting.gradients(task.query_rows().tokens, alpha)
    stored = np.hstack(
        [np.vstack([part for _, part in block.chunks()]) for block, _ in point.blocks()]
    )
    queries = np.hstack([vectors for _, vectors in point.blocks()])
    # stored as float32
    np.testing.assert_allclose(stored, G, rtol=1e-5, atol=1e-6 * np.abs(G).max())
    np.testing.assert_allclose(queries, V, rtol=1e-5, atol=1e-6 * np.abs(V).max())
    losses = [setting.loss(task.tokens, row).item() for row in range(3)] if alpha == 1.0 else ()
    np.testing.assert_allclose(point.losses[: len(losses)], losses, rtol=1e-9)


def test_at_scale_zero_only_b_has_a_gradient_and_the_losses_are_the_base_models(setting):
    task = setting.points.task("path", "x")
    G = setting.gradients(task.tokens, 0.0)
    point = task.gradients(adapter_scale=0.0)
    in_a = np.concatenate(
        [np.full(p.numel(), ".lora_A." in name) for name, p in setting.parameters.items()]
    )
    assert not G[:, in_a].any()
    np.testing.assert_allclose(point.row_norms, np.linalg.norm(G, axis=1), rtol=1e-6)
    assert (point.losses > task.gradients().losses).mean() > 0.9


def test_the_model_comes_back_to_the_bit(setting):
    model = setting.points.session.model.model
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            assert torch.equal(parameter, setting.parameters[name]), name


def test_path_is_its_formula_over_a_loop(setting):
    report = attribute(setting.config)
    task = setting.points.task("path", "x")
    rows = task.query_rows()
    total = 0.0
    for alpha in (0.25, 0.75):
        G = setting.gradients(task.tokens, alpha)
        V = rows.weights @ setting.gradients(rows.tokens, alpha)
        d = np.zeros(G.shape[1])
        for span in setting.spans:
            part = np.sqrt((G[:, span] ** 2).mean(axis=0))
            d[span] = part + 0.1 * part.mean()
        G, V = G / d, V / d
        cosines = (V / np.linalg.norm(V, axis=1)[:, None]) @ (
            G / np.linalg.norm(G, axis=1)[:, None]
        ).T
        total = total + cosines / np.abs(cosines).mean() / 2
    expected = np.zeros(len(task.examples))
    expected[setting.points.order] = total.mean(axis=0)
    np.testing.assert_allclose(
        report.scores.net, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max()
    )
    assert report.provenance.index["inputs"]["adapter_scale"] == 0.25
    assert len(report.provenance.result["more_indexes"]) == 1


def test_the_sign_by_a_step_at_the_scaled_adapter(setting):
    """A small SGD step on a row at scale 0.5 lowers an item's loss iff its score is positive."""
    task = setting.points.task("path", "x")
    point = task.gradients(adapter_scale=0.5)
    scores = sum(
        vectors @ np.vstack([part for _, part in block.chunks()]).T
        for block, vectors in point.blocks()
    )[0]
    order = np.argsort(scores)
    queries = task.query_rows().tokens
    for row in (*order[:3], *order[-3:]):
        setting.move(0.5)
        gradient = torch.autograd.grad(
            setting.loss(task.tokens, int(row)), list(setting.parameters.values())
        )
        length = float(sum(part.square().sum() for part in gradient)) ** 0.5
        losses = []
        for step in (-1e-3, 1e-3):
            with torch.no_grad():
                for parameter, part in zip(setting.parameters.values(), gradient, strict=True):
                    parameter.sub_(part, alpha=step / length)
                losses.append(float(setting.loss(queries, 0)))
                for parameter, part in zip(setting.parameters.values(), gradient, strict=True):
                    parameter.add_(part, alpha=step / length)
        change = losses[1] - losses[0]
        assert change == pytest.approx(-scores[row] * 2e-3 / length, rel=5e-2)
    setting.move(1.0)
    assert scores[order[0]] < 0 < scores[order[-1]]
