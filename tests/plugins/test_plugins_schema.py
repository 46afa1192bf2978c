"""One JSON schema of the settings, from what is installed."""

import json

import jsonschema
import pytest
import yaml

from gradian_core.cli.app import main
from gradian_core.config.load import load_config
from gradian_core.config.models import Config
from gradian_core.config.starter import starter_text
from gradian_core.plugins.registry import load_registry
from gradian_core.plugins.schema import config_schema, own_options

OPTIONS = '''
from enum import StrEnum
from pydantic import BaseModel
class Kind(StrEnum):
    A = "a"
    B = "b"
class Options(BaseModel):
    """Options."""
    k1: float = 1.2
    kind: Kind = Kind.A
    lambda_scale: float = 0.1
'''


@pytest.fixture
def registry(site):
    module = site.module(OPTIONS)
    site.engine("mine", dist="my-dist", spec=f"config='{module}:Options'")
    return load_registry()


def valid(registry, **sections):
    schema = config_schema(registry, pytest.fail)
    jsonschema.Draft202012Validator.check_schema(schema)
    return not list(jsonschema.Draft202012Validator(schema).iter_errors(sections))


def test_names_and_options_of_plugins(registry):
    assert valid(registry, engine={"name": "mine", "options": {"mine": {"k1": 2, "kind": "b"}}})
    assert not valid(registry, engine={"options": {"mine": {"k11": 2}}})
    assert not valid(registry, engine={"options": {"mine": {"kind": "c"}}})
    assert not valid(registry, engine={"options": {"yours": {}}})
    assert not valid(registry, engine={"name": "yours"})
    assert not valid(registry, engine={"nmae": "mine"})
    for other in ("none", None, "mine"):
        assert valid(registry, engine={"cross_check": other})


def test_the_starter_file_is_valid_under_it():
    schema = config_schema(load_registry(), pytest.fail)
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(starter_text()))


def test_the_command_prints_it(capsys):
    assert main(["config", "schema"]) == 0
    assert (
        "datainf"
        in json.loads(capsys.readouterr().out)["$defs"]["EngineSection"]["properties"]["name"][
            "enum"
        ]
    )


def test_own_options_are_comments_in_the_starter_file(registry, tmp_path):
    own = own_options(registry, pytest.fail)
    assert own == {
        "engine": ["Options of mine, from my-dist 1.0:", "mine:", "  k1: 1.2", '  kind: "a"']
    }
    text = starter_text(own=own)
    assert "  #     k1: 1.2\n" in text
    (tmp_path / "gradian.yaml").write_text(text)
    assert load_config(tmp_path / "gradian.yaml") == Config()


def test_init_config_writes_them(registry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["init-config"]) == 0
    assert "Options of mine, from my-dist 1.0:" in (tmp_path / "gradian.yaml").read_text()


def test_a_model_that_cannot_be_loaded_is_left_out_and_told(site, capsys):
    site.engine("lost", dist="lost", spec="config='surely_missing:Options'")
    assert main(["config", "schema"]) == 0
    captured = capsys.readouterr()
    assert (
        "lost" in json.loads(captured.out)["$defs"]["EngineSection"]["properties"]["name"]["enum"]
    )
    assert "Left out: Loading the options of engine lost" in captured.err
