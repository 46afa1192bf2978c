"""What must not change a score: strategy, batches, shards, padding."""

import pytest

from gradian_core.flows.attribute import attribute

SETTINGS = {
    "loop": {"strategy": "loop"},
    "vmap": {"strategy": "vmap"},
    "single rows": {"batch_size": 1},
    "one large batch": {"batch_size": 64},
    "few tokens": {"batch_size": 64, "batch_tokens": 64},
    "odd batches in odd shards": {"batch_size": 3, "chunk_size": 5},
    "checkpointing": {"gradient_checkpointing": True},
}
# A mixed-up example or a counted padding token changes scores by order 1. In a float64 model only
# the float32 of the index, and of the softmax and norms inside transformers, can round otherwise.
TOLERANCE = 1e-8


@pytest.fixture(scope="module")
def exact(tiny, make_config, write, tmp_path_factory):
    """Return the report on 15 rows of different lengths, for settings of section ``grads``."""
    folder = tmp_path_factory.mktemp("exact")
    rows = tiny.rows[::10] + [
        {"prompt": "Capital? " * (i + 1), "completion": "Belgrade " * (9 - i)} for i in range(9)
    ]
    data = write(folder / "rows.jsonl", rows)

    def report(name, grads):
        config = make_config(
            folder / name,
            dataset=str(data),
            eval_dataset=None,
            dtype="float64",
            engine={"name": "graddot", "cross_check": None},
            evaluation={"aggregation": "mean"},
            grads=grads,
        )
        return attribute(config)

    return report


@pytest.fixture(scope="module")
def default(exact):
    return exact("default", {})


@pytest.mark.parametrize("what", SETTINGS)
def test_scores_do_not_depend_on_how_gradients_are_taken(default, exact, same_scores, what):
    assert same_scores(default, exact(what, SETTINGS[what]), TOLERANCE)


def test_the_comparison_sees_what_does_matter(default, exact, same_scores):
    assert not same_scores(default, exact("cut", {"max_seq_length": 32}), 1e-3)
