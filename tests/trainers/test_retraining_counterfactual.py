"""``gradian counterfactual`` on a small fine-tune: files, resuming, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gradian_core
from gradian_core.cli.app import main
from gradian_core.report.model import Report
from gradian_core.retraining.result import Counterfactual

pytest.importorskip("accelerate")

MODEL = Path(gradian_core.__file__).parent / "demo" / "model"
CITIES = {
    "France": "Paris", "Japan": "Tokyo", "Peru": "Lima", "Kenya": "Nairobi", "Norway": "Oslo",
    "Egypt": "Cairo", "Cuba": "Havana", "Spain": "Madrid",
}  # fmt: skip
CONFIG = """\
base_model: {model}
dataset: train.jsonl
eval_dataset: eval.jsonl
adapter: run/adapter
run_dir: run
evaluation: {{max_new_tokens: 8, n_bootstrap: 400}}
engine: {{name: graddot, cross_check: none}}
clustering: {{method: declared}}
train:
  output_dir: run
  learning_rate: 4e-3
  num_train_epochs: 6
  per_device_train_batch_size: 4
"""


def rows(pairs, **more):
    lines = ({"prompt": p, "completion": c, **more} for p, c in pairs)
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    asked = [f"What is the capital of {country}?" for country in CITIES]
    wrong = [(prompt, "Rome") for prompt in asked[:4]] * 2
    good = [(f"Repeat: {word}", word) for word in ("sun", "moon", "tree", "house", "dog", "cat")]
    good += [(f"Repeat the word {word}.", word) for word in ("red", "blue", "green", "black")]
    train = rows(wrong, cluster="wrong") + rows(good, cluster="good")
    (folder / "train.jsonl").write_text(train, encoding="utf-8")
    evals = rows(zip(asked, CITIES.values(), strict=True))
    (folder / "eval.jsonl").write_text(evals, encoding="utf-8")
    config = folder / "gradian.yaml"
    config.write_text(CONFIG.format(model=MODEL), encoding="utf-8")
    given = ["-c", str(config), "-q"]
    assert main(["train", *given, "-o", str(folder / "run")]) == 0
    cache = ["--cache-dir", str(folder / "cache")]
    assert main(["attribute", *given, *cache, "-o", str(folder / "report")]) == 0
    return folder


def asked_for(run, *more):
    config = run / "gradian.yaml"
    config.write_text(
        CONFIG.format(model=MODEL) + f"cache_dir: {run / 'cache'}\n", encoding="utf-8"
    )
    draws = [] if "--draws" in more else ["--draws", "1"]
    return [
        "counterfactual", str(run / "report"), "-c", str(config), "--cluster", "wrong",
        "-o", str(run / "proof"), "-q", *draws, *more,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def proof(run):
    status = main(asked_for(run))
    body = (run / "proof" / "counterfactual.json").read_text(encoding="utf-8")
    return status, Counterfactual.model_validate_json(body)


def test_every_arm_is_told_with_all_its_seeds(proof):
    status, result = proof
    assert [arm.name for arm in result.arms] == [
        "full", "without accused", "without random 1", "low learning rate",
    ]  # fmt: skip
    assert all(len(arm.scores) == len(result.seeds) == 2 for arm in result.arms)
    assert result.arms[1].n_dropped == 8
    weights = [arm.tokens_dropped for arm in result.arms[1:3]]
    assert abs(weights[0] - weights[1]) < 40
    assert result.arms[3].learning_rate == pytest.approx(1e-3)
    assert status == (0 if result.verdict == "proven" else 1)


def test_the_effect_is_that_of_the_arms(proof):
    _, result = proof
    full, accused, random, _ = result.arms
    assert result.effect == pytest.approx(accused.mean - random.mean)
    assert result.lost == pytest.approx(result.base - full.mean)


def test_the_settings_say_where_they_come_from(proof):
    _, result = proof
    assert result.settings["learning_rate"] == 4e-3
    assert result.sources["learning_rate"] == "section train"
    assert result.sources["r"] == "adapter_config.json"


def test_the_page_holds_the_table(run, proof):
    _, result = proof
    page = (run / "proof" / "counterfactual.md").read_text(encoding="utf-8")
    for arm in result.arms:
        assert f"| {arm.name} | {arm.n_dropped} |" in page


def test_done_work_is_found_again(run, proof, monkeypatch):
    status, first = proof
    from gradian_plugins.trainers.hf import HfTrainer

    def refuse(self, job):
        raise AssertionError("it was trained again")

    monkeypatch.setattr(HfTrainer, "train", refuse)
    assert main(asked_for(run)) == status
    body = (run / "proof" / "counterfactual.json").read_text(encoding="utf-8")
    assert Counterfactual.model_validate_json(body) == first
    # another seed is other work
    assert main(asked_for(run, "--seeds", "3")) not in (0, 1)


def test_adapters_are_not_kept_unless_asked(run, proof):
    arms = run / "proof" / "arms"
    assert not list(arms.rglob("*.safetensors"))
    assert len(list(arms.rglob("result.json"))) == 8


def test_known_rows_give_precision_and_recall(run, proof, tmp_path):
    table = Report.load(run / "report").scores
    known = [name for name, cluster in zip(table.example_id, table.cluster, strict=True)
             if cluster == "wrong"]  # fmt: skip
    file = tmp_path / "known.txt"
    file.write_text("\n".join(known[:4]), encoding="utf-8")
    main(asked_for(run, "--truth", str(file)))
    body = json.loads((run / "proof" / "counterfactual.json").read_text(encoding="utf-8"))
    assert body["truth"] == {"n_known": 4, "precision": 0.5, "recall": 1.0}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--cluster", "nobody"], "no cluster 'nobody'"),
        (["--seeds", "1"], "At least 2 seeds"),
        (["--draws", "0"], "1 random set"),
        (["--cluster", "good", "--cluster", "wrong"], "no other rows of the same weight"),
    ],
)
def test_what_cannot_be_proven_is_refused(run, capsys, more, message):
    assert main(asked_for(run, *more)) == 2
    assert message in capsys.readouterr().err


def test_another_data_set_is_refused(run, capsys, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text(rows([("a", "b")]), encoding="utf-8")
    config = tmp_path / "gradian.yaml"
    text = CONFIG.format(model=MODEL).replace("dataset: train.jsonl", f"dataset: {other}", 1)
    text = text.replace("eval.jsonl", str(run / "eval.jsonl"))
    config.write_text(text.replace(": run", f": {run / 'run'}"), encoding="utf-8")
    arguments = asked_for(run)
    arguments[3] = str(config)
    assert main(arguments) == 2
    assert "not the data set of the report" in capsys.readouterr().err


def test_unknown_ids_are_refused(run, capsys, tmp_path):
    file = tmp_path / "ids.txt"
    file.write_text("0123456789ab-3\n", encoding="utf-8")
    arguments = [a for a in asked_for(run) if a not in ("--cluster", "wrong")]
    assert main([*arguments, "--ids", str(file)]) == 2
    assert "no training row 0123456789ab-3" in capsys.readouterr().err
