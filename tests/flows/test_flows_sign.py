"""The sign of a score, against what a step on a row really does to the query's loss.

The oracle is plain autograd on the model's logits: none of Gradian's gradient code.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gradian_core.data.encode import encode
from gradian_core.data.files import dataset_from_rows
from gradian_core.flows.attribute import attribute
from gradian_core.model.load import load_model

LENGTH = 1e-3
"""Of a step in parameter space: small for the curvature, large for the float32 in the norms."""


@pytest.fixture(scope="module")
def oracle(make_config, tmp_path_factory):
    """The tuned model in float64, with its loss on a row and steps on its LoRA parameters."""
    loaded = load_model(make_config(tmp_path_factory.mktemp("none"), dtype="float64"))
    parameters = [p for name, p in loaded.model.named_parameters() if "lora_" in name]

    def loss(row):
        tokens = encode(
            dataset_from_rows([row]), loaded.tokenizer, max_seq_length=256, supervise="all"
        ).tokens
        ids, mask = tokens.row(0)
        input_ids = torch.tensor(ids.astype(np.int64))[None]
        targets = input_ids[0].masked_fill(~torch.tensor(mask.copy()), -100)
        logits = loaded.model(input_ids=input_ids).logits[0]
        return torch.nn.functional.cross_entropy(logits[:-1], targets[1:])

    def gradient(row):
        return torch.autograd.grad(loss(row), parameters)

    def slope(row, query):
        """Change of the query's loss per unit of learning rate of one SGD step on the row."""
        direction = gradient(row)
        unit = LENGTH / float(sum(part.square().sum() for part in direction)) ** 0.5
        found = []
        for step in (-unit, unit):
            with torch.no_grad():
                for parameter, part in zip(parameters, direction, strict=True):
                    parameter.sub_(part, alpha=step)
                found.append(float(query()))
                for parameter, part in zip(parameters, direction, strict=True):
                    parameter.add_(part, alpha=step)
        return (found[1] - found[0]) / (2 * unit)

    return SimpleNamespace(loss=loss, slope=slope)


def clear_rows(scores, count=3):
    """Places of the rows with the largest scores of either sign."""
    order = np.argsort(scores)
    chosen = [*order[:count], *order[-count:]]
    assert scores[order[count - 1]] < 0 < scores[order[-count]]
    return chosen


@pytest.mark.parametrize("signal", ["target", "contrastive"])
def test_a_positive_score_lowers_the_loss_of_what_was_lost(
    tiny, make_config, warm, oracle, tmp_path, signal
):
    config = make_config(
        tmp_path,
        dtype="float64",
        engine={"name": "graddot", "cross_check": None},
        evaluation={"query_signal": signal, "aggregation": "mean"},
    )
    report = attribute(config)
    lost = [item for item in report.capability.items if item.regressed]
    assert report.query.n_rows == len(lost) > 0

    def query():
        """The mean over the lost items of the loss that the query is the gradient of."""
        total = 0.0
        for item in lost:
            total += oracle.loss({"prompt": item.prompt, "completion": item.reference})
            if signal == "contrastive":
                total -= oracle.loss({"prompt": item.prompt, "completion": item.tuned_output})
        return total / len(lost)

    scores = report.scores.score
    for row in clear_rows(scores):
        slope = oracle.slope(tiny.rows[row], query)
        assert (slope < 0) == (scores[row] > 0)
        assert slope == pytest.approx(-scores[row], rel=1e-2)
