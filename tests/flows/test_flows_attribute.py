"""From run folder to report, on a real model."""

import json
import shutil

import numpy as np
import pytest

from gradian_core.errors import InputError, PluginError
from gradian_core.flows.attribute import attribute
from gradian_core.plugins.registry import load_registry
from gradian_core.report.model import Report


def ids(report):
    return {finding.id for finding in report.findings}


def written(report, folder):
    """Write the report with every sink and return the bytes of its files."""
    folder.mkdir(exist_ok=True)
    registry = load_registry(())
    for name in ("json", "md", "csv"):
        list(registry.create("sink", name).write(report, folder))
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_report_names_the_planted_rows(tiny, warm):
    report = warm.report
    assert report.n_examples == len(tiny.rows) == 60
    assert report.capability.verdict == "regressed"
    assert report.capability.n_items == len(tiny.eval_rows)
    assert report.capability.n_flipped > 0
    assert report.query.signal == "target"
    assert report.query.n_rows == report.capability.n_flipped
    assert report.engine.name == "path"
    assert report.engine.agreement.engine == "datainf"
    # every row has a score, and the wrong capitals are what degrades capitals
    scores = report.scores
    assert len(scores) == 60
    assert np.isfinite(scores.score).all()
    planted = scores.score[:24]
    assert planted.sum() < 0
    assert {example.row for example in report.top_examples.most_harmful} <= set(range(24))
    assert planted.mean() < scores.score[24:].mean()
    assert {example.row for example in report.top_examples.most_harmful} <= set(range(24))
    assert report.clusters[0].stands_out
    assert report.clusters[0].influence == min(c.influence for c in report.clusters)
    assert sum(cluster.n for cluster in report.clusters) == 60
    assert {f.id for f in report.findings} >= {"attribution.engine_caveat"}
    assert report.headline


def test_provenance_names_inputs_and_no_place(tiny, warm, built):
    provenance = warm.report.provenance
    # one index a scale of the adapter
    assert provenance.index["id"] in built(warm.cache)["index"]
    assert len(built(warm.cache)["index"]) == 4
    assert set(provenance.result["query_indexes"]) == built(warm.cache)["queries"]
    assert provenance.index["provenance"] == {
        "base_model": "model",
        "adapter": "adapter",
        "dataset": "train.jsonl",
    }
    assert provenance.result["engine"] == {
        "name": "path",
        "alphas": [0.25, 0.5, 0.75, 1.0],
        "form": "acos",
        "signal": None,
    }
    text = warm.report.to_json()
    for place in (tiny.folder, tiny.base.parent, warm.cache):
        assert str(place) not in text


def test_sinks_write_and_the_same_run_gives_the_same_bytes(warm, make_config, tmp_path):
    first = written(warm.report, tmp_path / "one")
    assert set(first) == {"report.json", "report.md", "scores.csv"}
    again = written(attribute(warm.config), tmp_path / "two")
    assert again == first
    # nor does it matter where the caches lie, or that they were empty
    elsewhere = attribute(make_config(tmp_path / "other cache"))
    assert written(elsewhere, tmp_path / "three") == first
    assert Report.load(tmp_path / "one").scores == warm.report.scores


def test_a_moved_run_gives_the_same_report(tiny, warm, make_config, tmp_path):
    for name in ("train.jsonl", "eval.jsonl"):
        shutil.copy(tiny.folder / name, tmp_path / name)
    config = make_config(
        tmp_path / "cache",
        base_model=str(shutil.copytree(tiny.base, tmp_path / "model")),
        adapter_path=str(shutil.copytree(tiny.adapter, tmp_path / "adapter")),
        dataset=str(tmp_path / "train.jsonl"),
        eval_dataset=str(tmp_path / "eval.jsonl"),
    )
    assert attribute(config).to_json() == warm.report.to_json()


def test_a_base_model_of_another_name_is_told_without_its_place(tiny, make_config, tmp_path):
    config = make_config(
        tmp_path / "cache",
        base_model=str(shutil.copytree(tiny.base, tmp_path / "renamed")),
        eval_dataset=None,
    )
    report = attribute(config)
    note = "The adapter says that its base model is model; renamed was used as told."
    assert note in report.notes
    assert str(tmp_path) not in report.to_json()
    assert str(tiny.base.parent) not in report.to_json()


def test_nothing_changed_is_said_and_no_error(warm, make_config, write, tmp_path):
    rows = [{"prompt": "Say hello.", "completion": "Nobody would say this, ever."}] * 3
    config = make_config(warm.cache, eval_dataset=str(write(tmp_path / "e.jsonl", rows)))
    report = attribute(config)
    # three copies of one item
    assert (report.capability.verdict, report.capability.n_distinct) == ("undecidable", 1)
    assert ids(report) >= {
        "attribution.gate_failed",
        "attribution.no_item_regressed",
        "attribution.repeated_eval_items",
    }
    assert "no diagnosis" in report.headline.lower()


def test_right_answers_everywhere_leave_no_contrast(warm, make_config, write, tmp_path):
    """Where the tuned model says the right thing, right minus said is nothing."""
    item = warm.report.capability.items[0]
    rows = [{"prompt": item.prompt, "completion": item.tuned_output}]
    config = make_config(
        warm.cache,
        eval_dataset=str(write(tmp_path / "e.jsonl", rows)),
        evaluation={"query_signal": "contrastive"},
    )
    report = attribute(config)
    assert not report.scores.score.any()
    assert any("zero gradient" in note for note in report.notes)


def test_rows_that_teach_nothing_are_skipped_and_named(tiny, warm, make_config, write, tmp_path):
    rows = [
        tiny.rows[0],
        {"messages": [{"role": "user", "content": "Nobody answers this."}]},
        {"text": "Belgrade is the capital of every country."},
        {"prompt": "word " * 60, "completion": "cut off"},
        *tiny.rows[30:34],
    ]
    data = write(tmp_path / "odd.jsonl", rows)
    config = make_config(warm.cache, dataset=str(data), grads={"max_seq_length": 48})
    report = attribute(config)
    assert [row.row for row in report.skipped_rows] == [1, 3]
    assert "no supervised token" in report.skipped_rows[0].reason
    assert "max_seq_length 48" in report.skipped_rows[1].reason
    assert report.scores.score[[1, 3]].tolist() == [0.0, 0.0]
    assert (report.scores.score[[0, 2, 4, 5, 6, 7]] != 0).all()
    finding = next(f for f in report.findings if f.id == "attribution.rows_without_supervision")
    assert finding.evidence == {"n_rows": 2, "share": 0.25}
    assert finding.example_ids == tuple(report.scores.example_id[i] for i in (1, 3))
    whole = next(f for f in report.findings if f.id == "attribution.whole_sequence_supervision")
    assert whole.example_ids == (report.scores.example_id[2],)
    # a row without a gradient counts in no mean
    delta = report.scores.predicted_loss_delta_if_removed
    assert np.allclose(delta * 6, report.scores.net)


def test_whole_modules_beside_the_adapter_are_named(tiny, make_config, tmp_path):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny.base, local_files_only=True)
    lora = LoraConfig(
        task_type="CAUSAL_LM",
        r=2,
        target_modules=["q_proj", "down_proj"],
        modules_to_save=["model.norm"],
        init_lora_weights=False,
    )
    torch.manual_seed(0)
    model = get_peft_model(model, lora)
    model.save_pretrained(tmp_path / "adapter")
    config = make_config(
        tmp_path / "cache", adapter_path=str(tmp_path / "adapter"), eval_dataset=None
    )
    report = attribute(config)
    finding = next(f for f in report.findings if f.id == "attribution.not_attributed_parameters")
    assert finding.evidence == {"modules": ["model.norm"]}
    assert report.scores.score.any()


def test_no_eval_data_is_a_smoke_test_and_says_so(warm, make_config):
    report = attribute(make_config(warm.cache, eval_dataset=None))
    assert report.capability is None
    assert report.query.signal == "target"
    assert report.query.n_rows == 8
    assert "attribution.no_capability_target" in ids(report)
    # the rows that stand in for the query reinforce themselves
    assert report.scores.net[:8].min() > 0


def test_without_eval_data_rows_with_a_target_stand_in(tiny, make_config, write, tmp_path):
    unanswered = {"messages": [{"role": "user", "content": "Nobody answers this."}]}
    rows = [*[unanswered] * 9, *tiny.rows[:6]]
    data = write(tmp_path / "late.jsonl", rows)
    report = attribute(make_config(tmp_path / "cache", dataset=str(data), eval_dataset=None))
    assert report.query.n_rows == 6
    assert report.scores.net[9:].min() > 0


def test_the_run_folder_is_read(tiny, warm, make_config):
    config = make_config(
        warm.cache, run_dir=str(tiny.run), engine={"name": "tracin", "cross_check": None}
    )
    with_run = attribute(config)
    without = attribute(config.model_copy(update={"run_dir": None}))
    log = json.loads((tiny.run / "trainer_state.json").read_text())["log_history"]
    rate = log[-1]["learning_rate"]
    assert rate > 0
    assert np.allclose(with_run.scores.score, rate * without.scores.score)
    # what changes the scores changes their address
    assert with_run.provenance.result["learning_rate"] == rate
    assert without.provenance.result["learning_rate"] is None
    assert with_run.provenance.result["id"] != without.provenance.result["id"]


@pytest.mark.parametrize("kind", ["missing", "unknown"])
def test_a_run_folder_that_nobody_reads_is_refused(warm, make_config, tmp_path, kind):
    folder = tmp_path / "run"
    if kind == "unknown":
        folder.mkdir()
        (folder / "notes.txt").write_text("trained on Tuesday")
    with pytest.raises(InputError, match="run: "):
        attribute(make_config(warm.cache, run_dir=str(folder)))


@pytest.mark.parametrize(
    ("place", "changes", "owner"),
    [
        (
            "clusterers.kmeans.KMeansClusterer.cluster",
            {"clustering": {"method": "kmeans"}},
            "clusterers",
        ),
    ],
)
def test_a_plugin_that_fails_is_named(warm, make_config, monkeypatch, place, changes, owner):
    def fail(*_args):
        raise RuntimeError("oops")

    monkeypatch.setattr(f"gradian_plugins.{place}", fail)
    with pytest.raises(PluginError, match="oops") as caught:
        attribute(make_config(warm.cache, **changes))
    assert caught.value.owner.startswith(f"{owner}, gradian-ml")


def test_a_run_reader_that_fails_is_named(warm, make_config, monkeypatch, tmp_path):
    def fail(*_args):
        raise RuntimeError("oops")

    monkeypatch.setattr("gradian_plugins.runs.hf.HFRunReader.can_read", fail)
    with pytest.raises(InputError, match=r"Run reader hf failed: RuntimeError: oops \(plugin runs"):
        attribute(make_config(warm.cache, run_dir=str(tmp_path)))


def test_declared_clusters_are_the_report_s(tiny, warm, make_config, write, tmp_path):
    rows = [
        {**row, "cluster": "capitals" if i < 24 else "chores"} for i, row in enumerate(tiny.rows)
    ]
    data = write(tmp_path / "declared.jsonl", rows)
    report = attribute(
        make_config(warm.cache, dataset=str(data), clustering={"method": "declared"})
    )
    assert (report.clusters[0].label, report.clusters[0].n) == ("capitals", 24)
    assert np.array_equal(report.scores.score, warm.report.scores.score)


@pytest.mark.usefixtures("no_model")
def test_aggregations_rank_and_predictions_stay_net(warm, make_config):
    mean, worst = (
        attribute(make_config(warm.cache, evaluation={"aggregation": how}))
        for how in ("mean", "max")
    )
    np.testing.assert_array_equal(mean.scores.score, mean.scores.net)
    np.testing.assert_array_equal(worst.scores.net, mean.scores.net)
    np.testing.assert_array_equal(
        worst.scores.predicted_loss_delta_if_removed, mean.scores.predicted_loss_delta_if_removed
    )
    assert (worst.scores.score < mean.scores.score).all()
    assert worst.query.aggregation == "max"
    assert worst.provenance.result["id"] != mean.provenance.result["id"]
    # shares and sums of clusters follow the ranking, net effects do not
    keys = np.array(worst.scores.cluster)
    harm = np.maximum(-worst.scores.score, 0)
    for cluster in worst.clusters:
        inside = keys == cluster.cluster
        assert cluster.influence == pytest.approx(worst.scores.score[inside].sum())
        assert cluster.share_of_negative == pytest.approx(harm[inside].sum() / harm.sum())
        assert cluster.net == pytest.approx(mean.scores.score[inside].sum())
    worst_row = int(worst.scores.score.argmin())
    first = worst.top_examples.most_harmful[0]
    assert (first.row, first.score) == (worst_row, worst.scores.score[worst_row])
    assert first.net == worst.scores.net[worst_row]
