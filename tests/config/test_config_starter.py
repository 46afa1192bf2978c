"""The starter file."""

import pytest
import yaml

from gradian_core.config.load import load_config
from gradian_core.config.models import Config, Section
from gradian_core.config.starter import starter_text


def fields(model, prefix=()):
    for name, field in model.model_fields.items():
        if isinstance(field.default, Section):
            yield from fields(type(field.default), (*prefix, name))
        else:
            yield (*prefix, name), field


def test_it_loads_back_to_the_defaults(tmp_path):
    path = tmp_path / "gradian.yaml"
    path.write_text(starter_text())
    assert load_config(path) == Config()


@pytest.mark.parametrize("key", [pytest.param(k, id=".".join(k)) for k, _ in fields(Config)])
def test_every_field_is_there_with_a_comment(key):
    found = yaml.safe_load(starter_text())
    for part in key:
        assert part in found
        found = found[part]
    lines = starter_text().splitlines()
    indent = "  " * (len(key) - 1)
    section = lines.index(f"{key[0]}:") if len(key) > 1 else 0
    at = next(
        i for i, line in enumerate(lines) if i >= section and line.startswith(f"{indent}{key[-1]}:")
    )
    assert lines[at - 1].startswith(f"{indent}# ")


def test_every_field_is_described():
    assert [key for key, field in fields(Config) if not field.description] == []


@pytest.mark.parametrize(
    "model", ["meta-llama/Llama-3.2-1B-Instruct", "yes", "a: b #c", "2e-4", "null", "héé\t\"'\\"]
)
def test_base_model_is_filled_in(tmp_path, model):
    path = tmp_path / "gradian.yaml"
    path.write_text(starter_text(model), encoding="utf-8")
    assert load_config(path) == Config(base_model=model)


def test_lines_fit():
    assert max(map(len, starter_text().splitlines())) <= 100
