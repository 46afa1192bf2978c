"""The commands: what they hand to the flows and what they print."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from gradian_core.cli import environment, listing, reporting
from gradian_core.config.load import load_config
from gradian_core.config.models import Config
from gradian_core.demo.scenarios import SCENARIOS
from gradian_core.errors import PluginError
from gradian_core.plugins.record import PluginRecord, Provided, State
from gradian_core.plugins.registry import Registry
from gradian_core.progress import NoProgress
from gradian_core.report.model import Report
from gradian_core.specs import EngineSpec, SinkSpec

REPORT = Report(headline="All is well.", n_examples=3)
INPUTS = ("-a", "adapter", "-m", "model", "-d", "train.jsonl")


@pytest.fixture
def calls(flow):
    made = []

    def record(*args, **kwargs):
        made.append(SimpleNamespace(args=args, **kwargs))
        return REPORT

    flow("attribute", "attribute", record)

    def record_demo(*args, **kwargs):
        story = SCENARIOS[kwargs["scenario"]](kwargs["seed"])
        return SimpleNamespace(
            report=record(*args, **kwargs), scenario=story, accused=None, sane_settings=None
        )

    flow("demo", "run_demo", record_demo)
    return made


def registry_of(*records, notes=()):
    claims = {
        (kind, spec.name): (Provided(spec, record),)
        for record in records
        for kind, spec in record.provides
    }
    return Registry(plugins=records, notes=notes, claims=claims)


def plugin(state=State.OK, reason="", provides=(), **changes):
    values = {"name": "p", "distribution": "d", "version": "1", "module": "m", **changes}
    return PluginRecord(state=state, reason=reason, provides=provides, **values)


# --- attribute ---------------------------------------------------------------------------------


def test_attribute_hands_over_config_and_flags(gradian, calls):
    Path("gradian.yaml").write_text("seed: 9\nengine: {name: tracin}\ndevice: cuda\n")
    result = gradian(
        "attribute", "-c", "gradian.yaml", *INPUTS, "-e", "eval.jsonl", "-r", "run",
        "--capability", "json", "--engine", "graddot", "--cross-check", "none",
        "--metric", "contains", "--device", "cpu", "--cache-dir", "cache", "--force", "--quiet",
    )  # fmt: skip
    assert result.code == 0, result.err
    (call,) = calls
    assert call.args == (
        load_config(
            "gradian.yaml",
            {
                "adapter_path": "adapter",
                "base_model": "model",
                "dataset": "train.jsonl",
                "eval_dataset": "eval.jsonl",
                "run_dir": "run",
                "engine.name": "graddot",
                "engine.cross_check": "none",
                "evaluation.metric": "contains",
                "device": "cpu",
                "cache_dir": "cache",
            },
        ),
    )
    assert call.args[0].seed == 9
    assert call.args[0].engine.cross_check is None
    assert (call.capability, call.force) == ("json", True)
    assert isinstance(call.progress, NoProgress)
    assert "All is well." in result.out


def test_attribute_has_the_documented_defaults(gradian, calls):
    assert gradian("attribute", *INPUTS).code == 0
    (call,) = calls
    expected = Config(adapter_path="adapter", base_model="model", dataset="train.jsonl")
    assert call.args == (expected,)
    assert (call.capability, call.force) == ("capability", False)


@pytest.mark.parametrize("there", ["file", "file/below"])
def test_an_impossible_folder_is_refused_before_the_work(gradian, calls, there):
    Path("file").touch()
    result = gradian("attribute", *INPUTS, "-o", there)
    assert result.code == 2
    assert "--out" in result.err
    assert calls == []


def use_sinks(monkeypatch, **sinks):
    specs = [SinkSpec(name=name, summary="s", factory="m:C") for name in sinks]
    registry = registry_of(plugin(provides=tuple(("sink", spec) for spec in specs)))
    monkeypatch.setattr(reporting, "load_registry", lambda block: registry)
    monkeypatch.setattr(Registry, "create", lambda self, kind, name: sinks[name])


class Writes:
    def __init__(self, name):
        self.name = name

    def write(self, report, folder):
        (folder / self.name).write_text(report.headline)
        return [folder / self.name]


class Fails:
    def write(self, report, folder):
        raise RuntimeError("full moon")


def test_every_sink_but_the_terminal_writes_and_the_run_is_recorded(gradian, calls, monkeypatch):
    use_sinks(monkeypatch, a=Writes("a.txt"), terminal=Fails(), z=Writes("z.txt"))
    result = gradian("attribute", *INPUTS, "-o", "new/out", "-q")
    assert result.code == 0, result.err
    assert sorted(p.name for p in Path("new/out").iterdir()) == ["a.txt", "run.json", "z.txt"]
    assert Path("new/out/a.txt").read_text() == "All is well."
    assert result.err.splitlines() == [
        f"Written: {Path('new/out', name)}" for name in ("a.txt", "z.txt", "run.json")
    ]
    run = json.loads(Path("new/out/run.json").read_text())
    assert run["exit_status"] == 0
    assert run["versions"]["python"]


def test_a_failing_sink_keeps_no_other_from_writing(gradian, calls, monkeypatch):
    use_sinks(monkeypatch, a=Fails(), z=Writes("z.txt"))
    result = gradian("attribute", *INPUTS, "-o", "out", "-q")
    assert result.code == PluginError.exit_code
    assert "Sink a failed: RuntimeError: full moon (plugin p, d 1, m)" in result.err
    assert Path("out/z.txt").exists()
    assert "All is well." in result.out
    assert json.loads(Path("out/run.json").read_text())["exit_status"] == 3


# --- index, demo -------------------------------------------------------------------------------


def test_index_prints_the_folder(gradian, flow):
    seen = []

    def build_index(config, *, force, progress):
        seen.append((config, force))
        return SimpleNamespace(folder=Path(".gradian/index/abc"))

    flow("index", "build_index", build_index)
    result = gradian("index", *INPUTS, "--force")
    assert (result.code, result.out) == (0, f"{Path('.gradian/index/abc')}\n")
    assert seen == [
        (Config(adapter_path="adapter", base_model="model", dataset="train.jsonl"), True)
    ]


def test_demo(gradian, calls, monkeypatch):
    monkeypatch.setattr(reporting, "load_registry", lambda block: registry_of())
    result = gradian("demo", "--out", "there", "--seed", "3", "--keep")
    assert result.code == 0, result.err
    (call,) = calls
    assert call.args == (Path("there"),)
    assert (call.scenario, call.seed, call.keep) == ("wrong-facts", 3, True)
    assert "All is well." in result.out
    assert "72 wrong rows were planted" in result.out
    assert Path("there/report/run.json").exists()


@pytest.mark.parametrize("option", [("--clean",), ("--scenario", "clean")])
def test_demo_clean(gradian, calls, monkeypatch, option):
    monkeypatch.setattr(reporting, "load_registry", lambda block: registry_of())
    result = gradian("demo", "--out", "there", *option)
    assert calls[0].scenario == "clean"
    assert "no row is wrong" in result.out


# --- init-config -------------------------------------------------------------------------------


def test_init_config(gradian):
    result = gradian("init-config", "-m", "org/model")
    assert (result.code, result.out) == (0, "gradian.yaml\n")
    assert load_config("gradian.yaml") == Config(base_model="org/model")


def test_init_config_overwrites_only_when_told(gradian):
    Path("mine.yaml").write_text("seed: 3\n")
    refused = gradian("init-config", "-o", "mine.yaml")
    assert refused.code == 2
    assert "mine.yaml is already there" in refused.err
    assert Path("mine.yaml").read_text() == "seed: 3\n"
    assert gradian("init-config", "-o", "mine.yaml", "--force").code == 0
    assert load_config("mine.yaml") == Config()


def test_init_config_into_a_folder(gradian):
    Path("folder").mkdir()
    assert "folder is a folder" in gradian("init-config", "-o", "folder", "--force").err


# --- version, plugins, doctor ------------------------------------------------------------------


def test_version(gradian):
    from gradian_core import __version__

    assert gradian("version").out == gradian("--version").out == f"{__version__}\n"


ENGINE = EngineSpec(name="fast", summary="Fast one", factory="m:C", requires=("surely_missing",))


@pytest.fixture
def some_plugins(monkeypatch):
    registry = registry_of(
        plugin(name="good", provides=(("engine", ENGINE),)),
        plugin(State.FAILED, "cannot be imported: \x1b[31mno", name="bad", distribution="other"),
        notes=("x is blocked, but not installed.",),
    )
    monkeypatch.setattr("gradian_core.plugins.registry.load_registry", lambda: registry)
    return registry


def test_plugins_list(gradian, some_plugins):
    result = gradian("plugins", "list")
    assert result.code == 0
    assert result.out.splitlines() == [
        "STATE   NAME  PROVIDES  FROM     REASON",
        "ok      good  fast      d 1",
        "failed  bad   -         other 1  cannot be imported: no",
        "note: x is blocked, but not installed.",
    ]


def test_plugins_list_verbose(gradian, some_plugins):
    lines = gradian("plugins", "list", "-v").out.splitlines()
    assert "engine  fast  good (m)  Fast one" in lines


def test_plugins_list_json(gradian, some_plugins):
    body = json.loads(gradian("plugins", "list", "--json").out)
    assert body["schema_version"] == "1.0"
    assert [record["state"] for record in body["plugins"]] == ["ok", "failed"]
    (spec,) = body["plugins"][0]["provides"]
    assert (spec["kind"], spec["name"], spec["available"]) == ("engine", "fast", False)


def test_an_empty_list(monkeypatch):
    assert listing.as_text(registry_of(), verbose=True).startswith("STATE")


def test_doctor(gradian, some_plugins, monkeypatch):
    monkeypatch.setattr(environment, "load_registry", lambda: some_plugins)
    monkeypatch.setattr(environment, "installed_version", {"torch": "1.0", "peft": "0.20"}.get)
    monkeypatch.setattr(environment, "importable", lambda name: name == "kronfluence")
    result = gradian("doctor")
    assert result.code == 0
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert "torch 1.0 warning: it is older than 2.4, the oldest supported" in lines
    assert "peft 0.20" in lines
    assert "h5py not installed" in lines
    assert "ekfac installed" in lines
    assert "gguf missing gguf: pip install 'gradian-ml[gguf]'" in lines
    assert "torch not installed" in lines
    assert "bad failed warning: cannot be imported: no" in lines
    assert lines[-1] == "2 warnings."
    checks = json.loads(gradian("doctor", "--json").out)["checks"]
    assert {"section": "libraries", "name": "peft", "value": "0.20", "warning": ""} in checks


def test_doctor_survives_a_broken_torch(monkeypatch):
    monkeypatch.setattr(environment, "importable", lambda name: True)
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    (line,) = environment._devices()
    assert line.value == "cannot be used"
    assert line.warning.startswith("ModuleNotFoundError")


def test_doctor_sees_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(environment.os, "access", lambda path, mode: False)
    folder, free = environment._disk(tmp_path / "not" / "there")
    assert folder.warning == f"{tmp_path} cannot be written to; use --cache-dir"
    assert free.value.endswith("GiB")


def test_consensus_is_a_flag(gradian, flow):
    seen = []

    def record(config, **_):
        seen.append(config.engine.consensus)
        return REPORT

    flow("attribute", "attribute", record)
    assert gradian("attribute", *INPUTS).code == 0
    assert gradian("attribute", *INPUTS, "--skip-consensus").code == 0
    assert seen == [True, False]
