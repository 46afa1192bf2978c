"""A second question about the same run costs no gradient, no answer and no weight."""

import pytest

from gradian_core.flows.attribute import attribute
from gradian_core.flows.index import build_index

ASKED_OTHERWISE = {
    "damping": {"engine": {"lambda_scale": 0.5}},
    "absolute damping": {"engine": {"lambda_override": 1e-6}},
    "engine": {"engine": {"name": "graddot", "cross_check": None}},
    "unit queries": {"engine": {"name": "graddot", "normalize_query": True}},
    "cross-check": {"engine": {"cross_check": "tracin"}},
    "no cross-check": {"engine": {"cross_check": None}},
    "reduction": {"grads": {"loss_reduction": "sum"}},
    "normalisation": {"grads": {"normalization": "l2"}},
    "clustering": {"clustering": {"method": "kmeans", "n_clusters": 3}},
    "sum of queries' rows": {"grads": {"loss_reduction": "sum", "normalization": "token_count"}},
}
OTHER_GRADIENTS = {
    "length": {"max_seq_length": 64},
    "filter": {"module_filter": "down_proj"},
    "storage": {"storage_dtype": "float16"},
    "projection": {"projection_dim": 32},
    "granularity": {"block_granularity": "matrix"},
    "strategy": {"strategy": "loop"},
}


@pytest.fixture(scope="module")
def few(tiny, make_config, write, tmp_path_factory):
    """Return the config of an attribution over ten rows without eval data, for a cache."""
    data = write(tmp_path_factory.mktemp("few") / "rows.jsonl", tiny.rows[::6])

    def config(cache, **changes):
        # an engine that looks at one point, so that there is one index
        engine = {"name": "datainf"}
        return make_config(cache, dataset=str(data), eval_dataset=None, engine=engine, **changes)

    return config


@pytest.fixture(scope="module")
def first(few, tmp_path_factory):
    return attribute(few(tmp_path_factory.mktemp("first")))


def test_the_same_question_again_loads_no_weights(warm, no_model, built):
    before = built(warm.cache)
    report = attribute(warm.config)
    assert report == warm.report
    assert report.scores == warm.report.scores
    assert built(warm.cache) == before


@pytest.mark.parametrize("what", ASKED_OTHERWISE)
def test_another_use_of_the_gradients_takes_none(warm, make_config, no_model, built, what):
    before = built(warm.cache)
    report = attribute(make_config(warm.cache, **ASKED_OTHERWISE[what]))
    assert report.provenance.index == warm.report.provenance.index
    assert report.provenance.result["id"] != warm.report.provenance.result["id"]
    after = built(warm.cache)
    assert (after["index"], after["queries"]) == (before["index"], before["queries"])


def test_another_name_measures_nothing_anew(warm, no_model):
    report = attribute(warm.config, capability="capitals")
    assert report.capability.name == "capitals"
    assert report.capability.items == warm.report.capability.items
    assert "capitals regressed" in report.headline


@pytest.mark.parametrize("what", OTHER_GRADIENTS)
def test_other_gradients_are_another_index(few, first, built, tmp_path, what):
    other = attribute(few(tmp_path, grads=OTHER_GRADIENTS[what])).provenance
    assert other.index["id"] != first.provenance.index["id"]
    assert built(tmp_path)["index"] == {other.index["id"]}
    assert built(tmp_path)["queries"] == set(other.result["query_indexes"])


def test_another_order_is_another_data_set(tiny, make_config, warm, write, tmp_path):
    data = write(tmp_path / "turned.jsonl", tiny.rows[::-1])
    report = attribute(make_config(warm.cache, dataset=str(data)))
    assert report.provenance.index["id"] != warm.report.provenance.index["id"]
    # a row's score does not depend on where it stands
    assert report.scores.score[::-1] == pytest.approx(warm.report.scores.score, rel=1e-5)


def test_an_index_built_first_is_the_one_that_is_used(few, built, tmp_path):
    config = few(tmp_path)
    index = build_index(config)
    report = attribute(config)
    assert report.provenance.index["id"] == index.manifest.id
    assert built(tmp_path)["index"] == {index.folder.name}


def test_force_repairs_what_cannot_be_read(few, first, tmp_path):
    """Also the gradients of the queries, which no other command would build again."""
    config = few(tmp_path)
    attribute(config)
    for manifest in tmp_path.glob("*/*/manifest.json"):
        manifest.write_text("{")
    report = attribute(config, force=True)
    assert report.scores == first.scores


@pytest.mark.parametrize("kind", ["index", "queries"])
def test_a_truncated_shard_is_repaired_and_told(few, first, tmp_path, kind):
    config = few(tmp_path)
    attribute(config)
    shard = next(tmp_path.glob(f"{kind}/*/shards/*.h5"))
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-100])
    told = Listener()
    again = attribute(config, progress=told)
    assert shard.read_bytes() == whole
    assert any("damaged" in message and "built again" in message for message in told.messages)
    # the repair is news, not a property of the result
    assert again.to_json() == first.to_json()


class Listener:
    """Keeps what it is told."""

    def __init__(self):
        self.messages = []

    def message(self, text):
        self.messages.append(text)

    def task(self, description, total=None):
        from gradian_core.progress import NoProgress

        return NoProgress().task(description, total)
