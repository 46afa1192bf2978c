"""gradian.yaml: what is read, what is refused, and where the refusal points."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_core.config.load import load_config
from gradian_core.config.models import Config
from gradian_core.config.source import read_yaml
from gradian_core.errors import InputError, UsageError


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text, name="gradian.yaml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_no_file_gives_the_defaults():
    assert load_config() == Config()


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "~", "\ufeff"])
def test_empty_files_give_the_defaults(write, text):
    assert load_config(write(text)) == Config()


def test_values_of_every_level(write):
    config = load_config(
        write(
            """\
seed: 7
grads:
  batch_size: 2
  module_filter: 'layers\\.[0-3]\\.'
engine:
  lambda_scale: 2e-4
  cross_check: none
  options: {ekfac: {damping: 1e-8, layers: [1, 2]}}
train: {target_modules: [q_proj, v_proj], learning_rate: 1E-3}
plugins: {block: [noisy]}
"""
        )
    )
    assert config.seed == 7
    assert config.grads.batch_size == 2
    assert config.grads.module_filter == r"layers\.[0-3]\."
    assert config.engine.lambda_scale == 2e-4
    assert config.engine.cross_check is None
    assert config.engine.options == {"ekfac": {"damping": 1e-8, "layers": [1, 2]}}
    assert config.train.learning_rate == 1e-3
    assert config.train.target_modules == ["q_proj", "v_proj"]
    assert config.plugins.block == ("noisy",)


def test_a_section_without_keys_is_a_default(write):
    assert load_config(write("grads:\n  # all commented\nengine:\n")) == Config()


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("2e-4", 2e-4),
        ("2E+4", 2e4),
        ("-1.5e3", -1500.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1_000.5", 1000.5),
        ("017", 17),
        ("1_000", 1000),
        ("-3", -3),
        ("0x1F", "0x1F"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("2e", "2e"),
        ("'2e-4'", "2e-4"),
        ("e5", "e5"),
        (".inf", float("inf")),
        ("=", "="),
        ("1\n", 1),
        ("true", True),
        ("null", None),
    ],
)
def test_numbers_are_the_ones_that_people_mean(write, written, value):
    read = read_yaml(write(f"x: {written}")).values["x"]
    assert read == value
    assert type(read) is type(value)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30))
def test_every_number_reads_back(tmp_path_factory, number):
    path = tmp_path_factory.getbasetemp() / "number.yaml"
    path.write_text(f"x: {number!r}")
    read = read_yaml(path).values["x"]
    assert read == number
    assert type(read) is type(number)


TEXT = "text (a number or a date needs quotes)"
PROBLEMS = {
    "unknown key": ("\nsed: 1", ["gradian.yaml:2: sed: unknown key. Did you mean seed?"]),
    "unknown key in a section": (
        "engine:\n  name: a\n  lamda_scale: 1",
        ["gradian.yaml:3: engine.lamda_scale: unknown key. Did you mean lambda_scale?"],
    ),
    "key that resembles nothing": ("zzz: 1", ["gradian.yaml:1: zzz: unknown key."]),
    "several at once": (
        "sed: 1\ngrads:\n  batch_size: 0\n  strategy: hook",
        [
            "gradian.yaml:1: sed: unknown key. Did you mean seed?",
            "gradian.yaml:4: grads.strategy: wants 'hooks', 'loop' or 'vmap', not 'hook'.",
            "gradian.yaml:3: grads.batch_size: must be at least 1, not 0.",
        ],
    ),
    "text for a number": ('seed: "8"', ["gradian.yaml:1: seed: wants a whole number, not '8'."]),
    "truth for a number": ("seed: true", ["gradian.yaml:1: seed: wants a whole number, not true."]),
    "float for an int": ("seed: 1.0", ["gradian.yaml:1: seed: wants a whole number, not 1.0."]),
    "number for text": (
        "dataset: 3",
        [f"gradian.yaml:1: dataset: wants {TEXT}, not 3."],
    ),
    "text for truth": (
        "trust_remote_code: please",
        ["gradian.yaml:1: trust_remote_code: wants true or false, not 'please'."],
    ),
    "section for text": (
        "dataset: {a: 1}",
        [f"gradian.yaml:1: dataset: wants {TEXT}, not a section of keys."],
    ),
    "text for a section": (
        "grads: hooks",
        ["gradian.yaml:1: grads: wants a section of keys, not 'hooks'."],
    ),
    "null for a number": ("seed:", ["gradian.yaml:1: seed: wants a whole number, not null."]),
    "item of a list": (
        "plugins:\n  block:\n  - a\n  - 2",
        [f"gradian.yaml:4: plugins.block.1: wants {TEXT}, not 2."],
    ),
    "limits": (
        "evaluation: {ci_level: 1.0}\nengine: {lambda_scale: 0}",
        [
            "gradian.yaml:2: engine.lambda_scale: must be at least 1e-100, not 0.",
            "gradian.yaml:1: evaluation.ci_level: must be less than 1.0, not 1.0.",
        ],
    ),
    "not finite": (
        "engine: {lambda_scale: .nan}",
        ["gradian.yaml:1: engine.lambda_scale: wants a finite number, not nan."],
    ),
    "merge key": ("<<: {seed: 1}", ["gradian.yaml:1: <<: unknown key."]),
    "half a surrogate pair": (
        'dataset: "\\ud800"',
        ["gradian.yaml: some text in it is not valid Unicode."],
    ),
    "two adapters": (
        "adapter_path: a\n\nadapter: b",
        ["gradian.yaml:3: adapter and adapter_path are the same key, and here they differ."],
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_refused_values(write, problem):
    text, complaints = PROBLEMS[problem]
    path = write(text)
    with pytest.raises(UsageError) as caught:
        load_config(path.name)
    assert caught.value.message.split("\n") == complaints


def test_many_problems_are_counted(write):
    path = write("\n".join(f"key_{n}: 1" for n in range(15)))
    with pytest.raises(UsageError) as caught:
        load_config(path)
    lines = caught.value.message.split("\n")
    assert len(lines) == 11
    assert lines[-1] == "… and 5 more."


MALFORMED = {
    "duplicate key": ("seed: 1\n\nseed: 1", ":3: the key seed stands here and in line 1."),
    "duplicate in a section": ("grads:\n  a: 1\n  a: 2", ":3: the key a stands here and in line 2"),
    "alias": ("a: &x [1]\nb: *x", ":2:4: not valid YAML: aliases"),
    "bomb": (
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]",
        ":2:8: not valid YAML: aliases",
    ),
    "deep": ("[" * 100_000, ":1:33: not valid YAML: nested too deeply"),
    "code": ("x: !!python/object/apply:os.system [echo]", ":1:4: not valid YAML: the tag"),
    "binary tag": ("dataset: !!binary aGk=", ":1:10: not valid YAML: the tag"),
    "set": ("grads: !!set {a, b}", "not valid YAML: the tag"),
    "unknown tag": ("x: !thing 3", "not valid YAML: the tag !thing is not read"),
    "bad number": ("x: !!int abc", ":1:4: not valid YAML: abc is no number"),
    "endless number": ("x: " + "1" * 5000, "is no number that can be read"),
    "list": ("- seed: 1", "must hold 'key: value' lines"),
    "text": ("hello", "must hold 'key: value' lines"),
    "key is a list": ("? [a]\n: 1", ":1: a key must be a word"),
    "open bracket": ("a: [1", "not valid YAML"),
    "tab": ("a:\n\tb: 1", ":2:1: not valid YAML"),
    "two documents": ("a: 1\n---\nb: 2", "not valid YAML"),
    "control": ("a: \x01", "is no YAML"),
    "binary": (b"a: 1\nb: \xff\xfe", ":2 is not UTF-8"),
    "huge": (b"#" * ((1 << 20) + 1), "larger than 1 MiB"),
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_malformed_files(write, fault):
    text, message = MALFORMED[fault]
    path = write(text)
    with pytest.raises(InputError) as caught:
        load_config(path)
    assert message in caught.value.message
    assert caught.value.message.startswith(str(path))
    assert "\x1b" not in caught.value.message


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_unreadable_files(write, name):
    write("")
    with pytest.raises(InputError, match="cannot be read"):
        load_config(name)


@given(st.binary(max_size=200) | st.text(alphabet="ab:-[]{}&*!|>'\"#? \n\t1.e", max_size=60))
def test_no_input_escapes_as_anything_but_an_error_for_people(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        load_config(path)
    except (InputError, UsageError) as error:
        assert str(path) in error.message  # noqa: PT017 - both outcomes are fine


# --- overrides ---------------------------------------------------------------------------------


def test_overrides_win_and_none_changes_nothing(write, tmp_path):
    path = write("seed: 7\nengine: {name: graddot}\ndataset: a.jsonl\nadapter: old")
    config = load_config(
        path,
        {
            "seed": None,
            "engine.name": "tracin",
            "engine.cross_check": "none",
            "dataset": tmp_path / "b.jsonl",
            "adapter": "new",
        },
    )
    assert config.seed == 7
    assert config.engine.name == "tracin"
    assert config.engine.cross_check is None
    assert config.dataset == str(tmp_path / "b.jsonl")
    assert config.adapter_path == "new"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"engin.name": "x"}, "As given on the command line, engin: unknown key."),
        ({"seed": "x"}, "As given on the command line, seed: wants a whole number, not 'x'."),
        ({"adapter": "a", "adapter_path": "b"}, "here they differ"),
    ],
)
def test_unfit_overrides(overrides, message):
    with pytest.raises(UsageError) as caught:
        load_config(None, overrides)
    assert message in caught.value.message


def test_override_of_a_section_that_is_none(write):
    with pytest.raises(UsageError, match=r"gradian.yaml:1: engine: wants a section"):
        load_config(write("engine: datainf"), {"engine.name": "x"})


# --- paths -------------------------------------------------------------------------------------


def test_paths_are_looked_up_beside_the_file_first(write, tmp_path, monkeypatch):
    project = tmp_path / "project"
    (project / "org" / "model").mkdir(parents=True)
    (project / "train.jsonl").touch()
    absolute = tmp_path / "run"
    path = write(
        f"dataset: train.jsonl\neval_dataset: eval.jsonl\nbase_model: org/model\n"
        f"tokenizer: org/other\nrun_dir: {absolute}\n",
        "project/gradian.yaml",
    )
    (tmp_path / "train.jsonl").touch()
    (tmp_path / "eval.jsonl").touch()
    config = load_config(path.relative_to(tmp_path))
    assert config.dataset == str(Path("project", "train.jsonl"))
    assert config.eval_dataset == "eval.jsonl"
    assert config.base_model == str(Path("project", "org", "model"))
    assert config.tokenizer == "org/other"
    assert config.run_dir == str(absolute)
    assert config.cache_dir == ".gradian"


def test_overrides_are_taken_from_the_working_directory(write, tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.jsonl").touch()
    path = write("seed: 1", "project/gradian.yaml")
    assert load_config(path, {"dataset": "train.jsonl"}).dataset == "train.jsonl"


def test_home_folders(write, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert load_config(write("cache_dir: ~/c")).cache_dir == str(tmp_path / "c")


HUGE = "9" * 4000


def _whole_number_keys():
    from gradian_core.config.models import Section

    for name, field in Config.model_fields.items():
        section = field.default if isinstance(field.default, Section) else None
        fields = {name: field} if section is None else type(section).model_fields
        for key, inner in fields.items():
            if inner.annotation in (int, int | None):
                yield key if section is None else f"{name}.{key}"


@pytest.mark.parametrize("key", list(_whole_number_keys()))
@pytest.mark.parametrize("value", ["99999999999999999999", HUGE])
def test_no_whole_number_is_without_a_limit(tmp_path, key, value):
    path = tmp_path / "gradian.yaml"
    section, _, name = key.rpartition(".")
    path.write_text(f"{section}:\n  {name}: {value}\n" if section else f"{name}: {value}\n")
    with pytest.raises(UsageError, match="must be at most") as caught:
        load_config(path)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("engine:\n  lambda_override: 1e-320\n", "must be at least 1e-100"),
        ("engine:\n  lambda_override: 1e300\n", "must be at most 1e+100"),
        ("engine:\n  lambda_scale: 1e-300\n", "must be at least 1e-100"),
        ("engine:\n  lambda_scale: 0\n", "must be at least 1e-100"),
        ("train:\n  learning_rate: .inf\n", "a finite number"),
        ("seed: -1\n", "must be at least 0"),
        ("grads:\n  projection_seed: -1\n", "must be at least 0"),
    ],
)
def test_numbers_that_no_library_can_use(tmp_path, text, words):
    path = tmp_path / "gradian.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_config(path)
    assert words in str(caught.value)


def test_a_number_of_thousands_of_digits_is_one_sentence(tmp_path):
    path = tmp_path / "gradian.yaml"
    path.write_text(f"seed: {'9' * 5000}\n")
    with pytest.raises(InputError, match=r"gradian.yaml:1:7: .*9… is no number that can be read"):
        load_config(path)


def test_all_engines_is_the_default_beside_all(tmp_path):
    path = tmp_path / "gradian.yaml"
    path.write_text("engine: {name: all, cross_check: none}\n")
    engine = load_config(path).engine
    assert (engine.name, engine.also, engine.cross_check) == ("path", ["all"], None)
    assert load_config(None, {"engine.name": "all"}).engine.also == ["all"]
