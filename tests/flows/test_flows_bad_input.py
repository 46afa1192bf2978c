"""Whatever is handed in: one line that says what is wrong, no traceback, nothing half-written."""

import errno
import json
import os
import shutil
from types import SimpleNamespace

import pytest

CASES = {}


def case(code, *texts):
    """Register a way to spoil the inputs; ``texts`` is what the message must say."""

    def register(spoil):
        CASES[spoil.__name__] = (code, texts, spoil)
        return spoil

    return register


def config(box, text):
    path = box.tmp / "gradian.yaml"
    path.write_text(text)
    box.flags["--config"] = path


def dataset(box, text, flag="--dataset"):
    path = box.tmp / "data.jsonl"
    path.write_text(text)
    box.flags[flag] = path


def adapter(box, config=None, weights=None):
    """Give a copy of the adapter with changed config or weights."""
    folder = shutil.copytree(box.tiny.adapter, box.tmp / "spoiled")
    box.flags["--adapter"] = folder
    if config is not None:
        path = folder / "adapter_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | config))
    if weights is not None:
        from safetensors.torch import load_file, save_file

        path = folder / "adapter_model.safetensors"
        save_file({n: t.contiguous() for n, t in weights(load_file(path)).items()}, path)
    return folder


def base(box):
    box.flags["--base-model"] = shutil.copytree(box.tiny.base, box.tmp / "base")
    return box.flags["--base-model"]


# --- data ---------------------------------------------------------------------------------------


@case(2, "no file", "train.jsonl", "Did you mean trains.jsonl?")
def missing_file(box):
    (box.tmp / "trains.jsonl").write_text("{}")
    box.flags["--dataset"] = box.tmp / "train.jsonl"


@case(2, "data.jsonl holds no rows")
def empty_file(box):
    dataset(box, "")


@case(2, "data.jsonl:3")
def malformed_json(box):
    dataset(box, '{"prompt": "a", "completion": "b"}\n' * 2 + '{"prompt": "a", \n')


@case(2, "data.jsonl:2", "shape")
def no_recognised_keys(box):
    dataset(box, '{"prompt": "a", "completion": "b"}\n{"foo": "a", "bar": "b"}\n')


@case(2, "None of the 2 rows", "supervised token")
def nothing_to_learn_from(box):
    row = {"messages": [{"role": "user", "content": "Nobody answers."}]}
    dataset(box, f"{json.dumps(row)}\n" * 2)


@case(2, "data.jsonl", "row 1", "no answer")
def eval_row_without_answer(box):
    rows = [*box.tiny.eval_rows[:1], {"messages": [{"role": "user", "content": "Hello?"}]}]
    box.flags["--eval-dataset"] = box.write(box.tmp / "data.jsonl", rows)


@case(2, "data.jsonl", "row 0", "more than the 512 tokens")
def prompt_too_long(box):
    rows = [{"prompt": "one two three " * 300, "completion": "four"}]
    box.flags["--eval-dataset"] = box.write(box.tmp / "data.jsonl", rows)


# --- adapter ------------------------------------------------------------------------------------


@case(2, "--adapter")
def no_adapter(box):
    del box.flags["--adapter"]


@case(2, "--dataset")
def no_dataset(box):
    del box.flags["--dataset"]


@case(2, "does not fit the base model")
def adapter_for_another_base(box):
    adapter(
        box,
        weights=lambda w: {
            n: t[:, : t.shape[1] // 2] if "lora_A" in n else t for n, t in w.items()
        },
    )


@case(2, "does not fit the base model", "2 tensors do not match")
def adapter_for_more_layers(box):
    adapter(
        box,
        weights=lambda w: {
            **w,
            **{n.replace("layers.0.", "layers.9."): w[n].clone() for n in [*w][:2]},
        },
    )


@case(2, "whole model", "before merging")
def merged_adapter(box):
    box.flags["--adapter"] = box.tiny.base


@case(2, "Did you mean", "adapter")
def run_folder_for_adapter(box):
    box.flags["--adapter"] = box.tiny.run


@case(2, "never trained")
def untrained_adapter(box):
    adapter(box, weights=lambda w: {n: t * ("lora_B" not in n) for n, t in w.items()})


@case(2, "IA3", "LORA")
def another_kind_of_adapter(box):
    adapter(box, config={"peft_type": "IA3"})


@case(2, 'adapter_config.json: r: wants a whole number of at least 1, not "eight"')
def rank_in_words(box):
    adapter(box, config={"r": "eight"})


@case(2, "adapter_config.json: r: wants a whole number of at least 1, not 0")
def rank_of_zero(box):
    adapter(box, config={"r": 0})


@case(2, "adapter_config.json: target_modules: wants text or a list of names, not 5")
def target_modules_of_five(box):
    adapter(box, config={"target_modules": 5})


@case(2, 'adapter_config.json: lora_alpha: wants a number, not "16"')
def alpha_in_quotes(box):
    adapter(box, config={"lora_alpha": "16"})


@case(2, "adapter_config.json", "is refused by peft", "layers_to_transform")
def setting_that_peft_refuses(box):
    adapter(box, config={"target_modules": ".*proj", "layers_to_transform": [0]})


@case(2, "module_filter", "takes too long")
def filter_that_never_ends(box):
    config(box, "grads:\n  module_filter: '(?:[a-z_.0-9]|[a-z_.0-9])+[a-z]*[a-z_.0-9]+X\\Z'\n")
    box.monkeypatch.setattr("gradian_core.model.sites._FILTER_SECONDS", 1e-9)


@case(2, "adapter_config.json", "JSON")
def damaged_adapter_config(box):
    (adapter(box) / "adapter_config.json").write_text('{"peft_type": "LORA"')


@case(2, "weights in", "cannot be loaded")
def truncated_adapter(box):
    path = adapter(box) / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


@case(3, "logits are NaN")
def answers_of_a_diverged_adapter(box):
    adapter(box, weights=lambda w: {n: t * 1e30 for n, t in w.items()})


@case(3, "loss is not a finite number", "row")
def loss_of_a_diverged_adapter(box):
    adapter(box, weights=lambda w: {n: t * 1e30 for n, t in w.items()})
    del box.flags["--eval-dataset"]


# --- base model ---------------------------------------------------------------------------------


@case(2, "base_model", "no file or folder ./nowhere")
def no_such_folder(box):
    box.flags["--base-model"] = "./nowhere"


@case(3, "base_model", "gradian-tests/nowhere", "could not be downloaded")
def no_such_hub_id(box):
    box.monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    box.flags["--base-model"] = "gradian-tests/nowhere"


@case(2, "tokenizer", "cannot be loaded")
def no_tokenizer(box):
    folder = base(box)
    for path in folder.glob("*token*"):
        path.unlink()


@case(2, "base_model", "cannot be loaded")
def truncated_base(box):
    path = base(box) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:10_000])


@case(2, "base_model", "an adapter")
def adapter_for_base(box):
    box.flags["--base-model"] = box.tiny.adapter


# --- settings -----------------------------------------------------------------------------------


@case(2, "datinf", "Did you mean datainf?")
def unknown_engine(box):
    box.flags["--engine"] = "datinf"


@case(2, "gradot", "Did you mean graddot?")
def unknown_cross_check(box):
    box.flags["--cross-check"] = "gradot"


@case(2, "exact_mach", "Did you mean exact_match?")
def unknown_metric(box):
    box.flags["--metric"] = "exact_mach"


@case(2, "kmean", "Did you mean kmeans?")
def unknown_clusterer(box):
    config(box, "clustering:\n  method: kmean\n")


@case(2, "gradian.yaml:2", "lamda_scale", "Did you mean lambda_scale?")
def typo_in_config(box):
    config(box, "engine:\n  lamda_scale: 0.1\n")


@case(2, "module_filter", "matches none", "q_proj")
def filter_that_matches_nothing(box):
    config(box, "grads:\n  module_filter: donw_proj\n")


@case(2, "module_filter", "not a regular expression")
def filter_that_is_no_expression(box):
    config(box, "grads:\n  module_filter: '('\n")


@case(2, "contrastive needs generated answers")
def contrast_without_answers(box):
    config(box, "evaluation:\n  query_signal: contrastive\n  metric: loglik\n")


@case(2, "device", "banana")
def unknown_device(box):
    box.flags["--device"] = "banana"


@case(3, "cuda:97")
def absent_device(box):
    box.flags["--device"] = "cuda:97"


@case(2, "run: ", "no run reader knows")
def unknown_run(box):
    box.flags["--run"] = box.tmp


@case(2, "run: ", "no file or folder")
def missing_run(box):
    box.flags["--run"] = box.tmp / "run"


@case(2, "trainer_state.json", "not JSON")
def damaged_run(box):
    (box.tmp / "run").mkdir()
    (box.tmp / "run" / "trainer_state.json").write_text("{")
    box.flags["--run"] = box.tmp / "run"


@case(2, "--out", "cannot be a folder")
def out_is_a_file(box):
    box.flags["--out"] = box.tmp / "file"
    box.flags["--out"].write_text("mine")


# --- disk ---------------------------------------------------------------------------------------


@case(3, "cache", "cannot be written", "--cache-dir")
def cache_below_a_file(box):
    (box.tmp / "file").write_text("mine")
    box.flags["--cache-dir"] = box.tmp / "file" / "cache"


@case(3, "cannot be written", "--cache-dir")
def read_only_cache(box):
    box.read_only()


@case(3, "only 1 MB are free", "cache_dir")
def index_larger_than_the_disk(box):
    usage = SimpleNamespace(total=1 << 30, used=1 << 30, free=1 << 20)
    box.monkeypatch.setattr("gradian_core.index.job.shutil.disk_usage", lambda _path: usage)


@case(3, "error: The index at", "cannot be written: No space left on device. Whole shards are kept")
def disk_full_while_building(box):
    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    box.monkeypatch.setattr("gradian_core.index.hdf5.os.fsync", full)
    box.monkeypatch.setattr("gradian_core.flows.evaluate.save_measurement", lambda *_: None)


@case(3, "evaluations", ".json cannot be written: No space left on device", "Free some space")
def disk_full_while_measuring(box):
    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    box.monkeypatch.setattr("gradian_core.files.os.fsync", full)


@pytest.mark.parametrize("name", CASES)
def test_attribute(box, leftovers, name):
    code, texts, spoil = CASES[name]
    spoil(box)
    result = box.run()
    assert result.code == code, result.err
    assert result.out == ""
    lines = result.err.splitlines()
    assert sum(line.startswith("error: ") for line in lines) == 1, result.err
    assert all(line.startswith(("error: ", "help: ")) for line in lines), result.err
    for text in texts:
        assert text in result.err
    if name != "damaged_run":  # the words of a plugin
        assert lines[-1].startswith("help: ")
    for folder in (box.flags["--cache-dir"], box.flags["--out"]):
        if folder.is_dir():
            assert leftovers(folder) == []


INDEX_ONLY = (
    "malformed_json",
    "untrained_adapter",
    "no_tokenizer",
    "filter_that_matches_nothing",
    "loss_of_a_diverged_adapter",
    "disk_full_while_building",
    "cache_below_a_file",
)


@pytest.mark.parametrize("name", INDEX_ONLY)
def test_index(box, leftovers, name):
    code, texts, spoil = CASES[name]
    spoil(box)
    result = box.run(command="index")
    assert result.code == code, result.err
    assert [line.partition(":")[0] for line in result.err.splitlines()] in (
        ["error"],
        ["error", "help"],
    )
    for text in texts:
        assert text in result.err
    if box.flags["--cache-dir"].is_dir():
        assert leftovers(box.flags["--cache-dir"]) == []


def test_settings_of_a_newer_peft_are_noted(box):
    adapter(box, config={"use_qalora": False, "invented_in_2031": True, "and_this": None})
    result = box.run()
    assert result.code == 0, result.err
    notes = json.loads((box.out / "report.json").read_text())["notes"]
    (note,) = [note for note in notes if "does not know" in note]
    assert "and_this, invented_in_2031" in note
    assert "use_qalora" not in note
    assert str(box.tmp) not in note
