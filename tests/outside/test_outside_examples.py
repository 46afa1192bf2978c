"""The two example packages, as wheels in a fresh environment beside the built gradian-ml."""

import json

import pytest

pytestmark = pytest.mark.wheels


def test_nothing_of_the_checkout_is_imported(outside):
    program = "import gradian_core, gradian_checks; print(gradian_core.__file__)"
    done = outside.run("python", "-c", program)
    assert done.stdout.startswith(str(outside.site)), done.stderr


def test_they_are_listed(outside):
    done = outside.run("gradian", "plugins", "list", "--json")
    assert done.returncode == 0, done.stderr
    found = {p["name"]: p for p in json.loads(done.stdout)["plugins"]}
    assert {p["state"] for p in found.values()} == {"ok"}
    house, bm25 = found["house"], found["bm25-contrast"]
    assert (house["distribution"], house["version"]) == ("gradian-check-example", "1.0.0")
    assert [p["name"] for p in house["provides"]] == [
        "house.emails_in_answers",
        "house.too_many_epochs",
    ]
    assert [(p["kind"], p["name"]) for p in bm25["provides"]] == [("engine", "bm25-contrast")]


def test_their_checks_are_listed_and_shown(outside):
    done = outside.run("gradian", "checks")
    assert "house: 2 checks" in done.stdout, done.stderr
    done = outside.run("gradian", "checks", "show", "house.too_many_epochs")
    assert "our reviews assume" in done.stdout, done.stderr


@pytest.mark.parametrize("name", ["house", "bm25-contrast"])
def test_they_keep_their_promises(outside, name):
    done = outside.run("gradian", "plugins", "verify", name)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["gradian-check-example", "gradian-engine-example"])
def test_their_own_tests_pass(outside, examples, name, tmp_path):
    tests = examples / name / "tests"
    quiet = ("-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--import-mode=importlib")
    done = outside.run("python", "-B", "-m", "pytest", *quiet, tests, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_diagnose_shows_their_findings(outside, tmp_path):
    rows = [{"prompt": f"Question {i}?", "completion": f"Answer {i}."} for i in range(30)]
    rows.append({"prompt": "Who does billing?", "completion": "Ask ann@acme.com."})
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "run").mkdir()
    settings = {"num_train_epochs": 9, "learning_rate": 1e-4, "per_device_train_batch_size": 2}
    (tmp_path / "run" / "training_args.json").write_text(json.dumps(settings))
    done = outside.run(
        *("gradian", "diagnose", "-d", "train.jsonl", "--select", "house.*", "--format", "json"),
        *("--quiet", "--out", "reports"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["id"] == "house.emails_in_answers"
    assert finding["example_ids"][0].endswith("-30")
    assert "1 of 31 rows" in (tmp_path / "reports" / "report.md").read_text()


def test_attribute_with_their_engine(outside, tmp_path):
    pytest.importorskip("peft")
    import yaml

    from gradian_core.testing.fixtures import tiny_run

    run = tiny_run(tmp_path / "run")
    engine = {"name": "bm25-contrast", "cross_check": "graddot"}
    engine["options"] = {"bm25-contrast": {"k1": 1.5}}
    config = run.config(tmp_path / "cache", engine=engine).model_dump(mode="json")
    (tmp_path / "gradian.yaml").write_text(yaml.safe_dump(config))
    done = outside.run(
        *("gradian", "attribute", "--config", "gradian.yaml", "--quiet", "--out", "reports"),
        cwd=tmp_path,
        HF_HUB_OFFLINE="1",
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "reports" / "report.json").read_text())
    assert report["engine"]["name"] == "bm25-contrast"
    assert report["engine"]["settings"]["k1"] == 1.5
    assert report["engine"]["agreement"]["engine"] == "graddot"
    assert "bm25-contrast compares words" in json.dumps(report)
    # The wrong capital is what the fine-tune says now, and half of the rows say it.
    worst = [example["row"] for example in report["top_examples"]["most_harmful"]]
    assert worst
    assert set(worst) <= set(range(12))


def test_a_misspelt_option_of_theirs_is_refused(outside, tmp_path):
    engine = "engine: {name: bm25-contrast, options: {bm25-contrast: {k11: 2}}}\n"
    (tmp_path / "gradian.yaml").write_text(engine)
    pytest.importorskip("peft")
    from gradian_core.demo import MODEL_FOLDER

    (tmp_path / "t.jsonl").write_text('{"prompt": "a", "completion": "b"}\n')
    (tmp_path / "adapter").mkdir()
    done = outside.run(
        *("gradian", "attribute", "-c", "gradian.yaml", "-d", "t.jsonl", "-a", "adapter"),
        *("-m", MODEL_FOLDER),
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "k11: unknown key. Did you mean k1?" in done.stderr
