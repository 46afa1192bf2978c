"""Lists in the pages against the code that they list."""

import dataclasses
import inspect
import re
from typing import Literal, get_args, get_origin

import pytest
import yaml

from gradian_core import __version__, errors, hookspecs, protocols, specs
from gradian_core.attribution import clusters, uptake
from gradian_core.audit import reference as checks_page
from gradian_core.check import FACTS
from gradian_core.cli import failures
from gradian_core.cli.app import build_app
from gradian_core.config import models
from gradian_core.config.reference import decides, reference_text
from gradian_core.config.starter import starter_text
from gradian_core.data.rows import SHAPES
from gradian_core.data.turns import ROLES
from gradian_core.evaluation import findings as evaluation_findings
from gradian_core.plugins.record import State
from gradian_core.plugins.registry import load_registry
from gradian_core.report import findings as report_findings
from gradian_core.report.model import Report
from gradian_core.report.scores import COLUMNS


def source_of(root, *rooms):
    return "\n".join(
        path.read_text(encoding="utf-8") for room in rooms for path in (root / room).rglob("*.py")
    )


def bare(names):
    return [name.strip("`") for name in names]


def in_backticks(text):
    return set(re.findall(r"`([^`]+)`", text))


# --- configuration -----------------------------------------------------------------------------


def test_the_page_of_the_settings_is_current(root):
    found = (root / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert found == reference_text(), "run: python -m gradian_core.config.reference"


def test_the_page_has_every_setting_with_its_default(docs, cells):
    page = docs("configuration")
    for name, value in yaml.safe_load(starter_text()).items():
        if name in {section for section in models.Config.model_fields if is_section(section)}:
            assert bare(cells(page.section(f"## `{name}`"))) == list(value)
        else:
            assert f"`{name}`" in cells(page.section("## Top level"))


def is_section(name):
    return isinstance(models.Config.model_fields[name].default, models.Section)


def other(field, value):
    """Return another value of the same kind."""
    choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    if len(choices) > 1:
        # the last one: what ``auto`` resolves to is no other value
        return next(choice for choice in reversed(choices) if choice != value)
    if isinstance(value, bool):
        return not value
    if value is None and {int, float} & set(get_args(field.annotation)):
        return 7
    return value + 1 if isinstance(value, int | float) else "x"


def scalar_settings():
    for name, field in models.Config.model_fields.items():
        if not is_section(name):
            yield name, field
            continue
        for inner, inner_field in type(field.default).model_fields.items():
            yield f"{name}.{inner}", inner_field


# The content that these name, and not their value, decides; and "x" is no device.
NO_VALUES = {"adapter_path", "base_model", "dataset", "tokenizer", "device"}


def test_the_index_id_changes_with_the_settings_that_are_said_to_decide_it(monkeypatch):
    pytest.importorskip("torch")
    from gradian_core.data import cache
    from gradian_core.flows.session import Session
    from gradian_core.index.address import index_id
    from gradian_core.progress import NoProgress

    monkeypatch.setattr(cache, "tokenizer_fingerprint", lambda tokenizer: "t")

    def address(config):
        session = Session(config, NoProgress())
        vars(session).update(_adapter_digest="a", _base_digest="b", tokenizer=None)
        return index_id(session.inputs(dataset="d"))

    default = models.Config()
    changing = set()
    for key, field in scalar_settings():
        section, _, name = key.rpartition(".")
        part = getattr(default, section) if section else default
        changed = part.model_copy(update={name: other(field, getattr(part, name))})
        config = default.model_copy(update={section: changed}) if section else changed
        if key not in NO_VALUES and address(config) != address(default):
            changing.add(key)
    said = {key for key, _ in scalar_settings() if decides(key).startswith("index")}
    assert changing == said - NO_VALUES
    assert said >= NO_VALUES


def test_the_page_says_of_each_setting_what_it_decides():
    assert decides("seed") == "index, result"
    assert decides("dataset") == decides("grads.projection_dim") == decides("tokenizer") == "index"
    assert decides("grads.normalization") == decides("clustering.method") == "result"
    assert decides("grads.batch_size") == decides("train.seed") == decides("cache_dir") == "–"


# --- command line ------------------------------------------------------------------------------


def commands(app=None, path="gradian"):
    for name in app or build_app():
        if name.startswith("-"):
            continue
        found = (app or build_app())[name]
        inner = [other for other in found if not other.startswith("-")]
        if inner:
            yield from commands(found, f"{path} {name}")
        else:
            yield f"{path} {name}", found


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_every_option_is_listed(docs, cells, name):
    command = dict(commands())[name]
    section = docs("cli").section(f"### `{name}`")
    listed = {tuple(re.findall(r"`([^`]+)`", cell)) for cell in cells(section)}
    arguments = command.assemble_argument_collection()
    options = [argument for argument in arguments if argument.names[0].startswith("-")]
    # outside its program a command also has the negative flags that the program switches off
    switched_off = ("--no-", "--empty-")
    assert listed == {tuple(n for n in o.names if not n.startswith(switched_off)) for o in options}
    for argument in arguments:
        assert argument in options or argument.names[0] in section


def test_every_section_is_a_command(docs):
    sections = re.findall(r"^### `(gradian [^`]+)`$", docs("cli").text, re.MULTILINE)
    assert sorted(sections) == sorted(name for name, _ in commands())


def test_exit_codes(docs, cells):
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    wanted = {kind.exit_code for kind in kinds if issubclass(kind, errors.GradianError)}
    wanted |= {0, failures.INTERNAL, failures.INTERRUPTED, failures.CLOSED_PIPE}
    assert {int(cell) for cell in cells(docs("cli").section("## Exit codes"))} == wanted


def test_our_environment_variables(root, docs, cells):
    used = set(re.findall(r"environ(?:\.get\(|\[)\"(GRADIAN_\w+)", source_of(root, "gradian_core")))
    listed = set(bare(cells(docs("cli").section("## Environment variables"))))
    assert used == {name for name in listed if name.startswith("GRADIAN_")} != set()


# --- plugins -----------------------------------------------------------------------------------


def test_hooks_with_their_signatures(docs, cells):
    def signature(name, spec):
        hook = getattr(hookspecs, name)
        assert str(inspect.signature(hook).return_annotation) == f"Iterable[{spec.__name__}]"
        assert not inspect.signature(hook).parameters
        return f"{name}() -> Iterable[{spec.__name__}]"

    wanted = {signature(name, spec) for name, spec in hookspecs.HOOKS.items()}
    assert set(bare(cells(docs("plugins").section("## Hooks")))) == wanted


def test_fields_of_specs(docs, cells):
    section = docs("plugins").section("## Specs")
    common = [field.name for field in dataclasses.fields(specs.Spec)]
    assert bare(cells(section)) == common
    for kind in hookspecs.HOOKS.values():
        more = {field.name for field in dataclasses.fields(kind)} - set(common)
        assert more <= in_backticks(section)


def test_protocols(docs, cells):
    wanted = {
        name
        for name in protocols.__all__
        if getattr(getattr(protocols, name), "_is_runtime_protocol", False)
    }
    assert set(bare(cells(docs("plugins").section("## Protocols")))) == wanted
    for name in wanted:
        methods = [n for n, kind in vars(getattr(protocols, name)).items() if callable(kind)]
        for method in methods:
            assert method.startswith("_") or f"`{method}(" in docs("plugins").text


def test_signatures_of_protocols(docs):
    lines = re.findall(r"^class (\w+): (.+)$", docs("plugins").text, re.MULTILINE)
    kinds = ("TextMetric", "LikelihoodMetric", "Clusterer", "Sink", "RunReader", "Trainer")
    wanted = {
        (kind, f"{name}{inspect.signature(method)}")
        for kind in kinds
        for name, method in vars(getattr(protocols, kind)).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    assert set(lines) == wanted


def test_facts_of_checks(docs, cells):
    assert set(bare(cells(docs("write-a-check").section("## Facts")))) == FACTS


def test_states_of_plugins(docs, cells):
    assert bare(cells(docs("plugins").section("## States"))) == [str(state) for state in State]


def test_built_in_plugins_are_described(docs):
    registry = load_registry()
    names = in_backticks(docs("how-it-works").prose)
    for kind in (registry.engines, registry.metrics, registry.clusterers):
        built_in = {n for n, given in kind.items() if given.plugin.distribution == "gradian-ml"}
        assert built_in <= names


# --- method and report -------------------------------------------------------------------------


def test_every_finding_is_described(root, docs, cells):
    source = source_of(root, "gradian_core", "engines", "plugins")
    ids = set(re.findall(r"\"(attribution\.[a-z_]+)\"", source))
    assert sorted(bare(cells(docs("how-it-works").section("## Findings")))) == sorted(ids)


def test_the_sign_convention_is_quoted(docs):
    quote = " ".join(
        re.findall(r"^> (.+)$", docs("how-it-works").section("### Sign"), re.MULTILINE)
    )
    assert quote
    assert quote in " ".join(protocols.__doc__.split())


def test_thresholds(docs):
    text = " ".join(docs("how-it-works").text.split())
    high, low = report_findings.AGREEMENT_HIGH, report_findings.AGREEMENT_LOW
    for sentence in (
        f"at least {clusters.STANDS_OUT_ROWS} rows",
        f"at least {clusters.STANDS_OUT_RATIO:g} times the harm",
        f"overlap below {high}, below {low}",
        f"where uptake is {uptake.TAUGHT:g} or more",
        f"less than {uptake.SHORT} characters",
        f"mean score is below {evaluation_findings.WEAK_SCORE} ",
        f"−{-evaluation_findings.WEAK_LOGLIK:g} nats a token",
        f"by less than {evaluation_findings.THIN_MARGIN:g} nat",
    ):
        assert sentence in text
    assert f"`harm_ratio` of {clusters.STANDS_OUT_RATIO:g} or more" in docs("report").text


def test_strategies_and_signals(docs):
    names = in_backticks(docs("how-it-works").prose)
    for section, field in (
        (models.GradsSection, "strategy"),
        (models.EvaluationSection, "query_signal"),
    ):
        choices = set(get_args(section.model_fields[field].annotation))
        assert choices <= names


def test_fields_of_the_report(docs, cells):
    listed = bare(cells(docs("report").section("## `report.json`")))
    assert sorted(listed) == sorted(set(Report.model_fields) - {"schema_version"})
    assert tuple(bare(cells(docs("report").section("## `scores.csv`")))) == COLUMNS


# --- data --------------------------------------------------------------------------------------


def test_row_shapes_in_their_order(docs):
    rows = re.findall(r"^\| (\d) \| (.+?) \|", docs("data").section("## Row shapes"), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, len(SHAPES) + 1))
    for (_, keys), shape in zip(rows, SHAPES, strict=True):
        assert re.findall(r"`(\w+)`", keys) == [key for group in shape.needs for key in group]
    taken = {key for shape in SHAPES for key in shape.takes}
    assert taken <= in_backticks(docs("data").prose)


def test_roles(docs):
    section = docs("data").section("## Row shapes")
    rows = re.findall(r"^\| `(\w+)` \| ((?:`\w+`(?:, )?)+) \|$", section, re.MULTILINE)
    listed = {name: role for role, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert listed == {name: role for name, role in ROLES.items() if name != role}


# --- project -----------------------------------------------------------------------------------


def test_rooms(root, docs):
    text = docs("architecture").text
    for path in re.findall(
        r"`((?:gradian_core|engines|plugins|checks|experiments|tests)/[^`]*)`", text
    ):
        assert (root / path).exists(), path
    for room in (root / "gradian_core").iterdir():
        if (room / "__init__.py").is_file():
            assert f"`gradian_core/{room.name}/`" in text


def test_tox_environments(root, cells):
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text[text.index("## What CI runs") : text.index("## Style")]
    wanted = set(
        re.findall(r"^\[testenv:(\w+)\]", (root / "tox.ini").read_text(), re.MULTILINE)
    ) | {"py"}
    assert set(bare(cells(table))) == wanted


def test_the_changelog_has_this_version(root):
    assert f"\n## {__version__} " in (root / "CHANGELOG.md").read_text(encoding="utf-8")


# --- checks ------------------------------------------------------------------------------------


def test_the_page_of_the_checks_is_current(root):
    found = (root / "docs" / "checks.md").read_text(encoding="utf-8")
    expected = checks_page.reference_text(load_registry())
    assert found == expected, "run: python -m gradian_core.audit.reference"


def test_the_page_of_the_checks_says_everything_of_each(docs):
    page = docs("checks")
    sections = re.findall(r"^### `([^`]+)`\n(.*?)(?=^##|\Z)", page.text, re.MULTILINE | re.DOTALL)
    assert {name for name, _ in sections} == set(load_registry().checks)
    for name, text in sections:
        for heading in ("Severity", "Needs", "Why it matters", "How to fix", "Not assessed"):
            assert f"**{heading}**:" in text, (name, heading)
        assert "\n**Threshold" in text, name
