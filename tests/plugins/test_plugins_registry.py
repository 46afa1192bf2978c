"""Blocking, clashes, missing packages, and making things by name."""

import pytest

from gradian_core.check import Check
from gradian_core.errors import CannotRunError, MissingExtraError, PluginError, UsageError
from gradian_core.plugins.registry import load_registry

OPTIONS = """
from pydantic import BaseModel
class Options(BaseModel):
    damping: float = 0.1
    seed: int = 0
"""


def states(registry):
    return {record.distribution: str(record.state) for record in registry.plugins}


# --- blocking ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["thing", "my-dist", "My_Dist"])
def test_block_by_plugin_or_distribution(site, monkeypatch, name):
    site.engine("a", dist="my-dist")
    site.engine("b", dist="other", entry="other")
    assert list(load_registry([name]).engines) == ["b"]
    monkeypatch.setenv("GRADIAN_BLOCK", f" {name} , ")
    registry = load_registry()
    assert list(registry.engines) == ["b"]
    assert states(registry) == {"my-dist": "blocked", "other": "ok"}
    assert registry.notes == ()


def test_blocked_plugins_are_not_imported(site):
    site.plugin("raise AssertionError", dist="my-dist")
    assert states(load_registry(["thing"])) == {"my-dist": "blocked"}


def test_blocking_what_is_not_there_is_a_note(site):
    (note,) = load_registry(["tihng"]).notes
    assert "tihng" in note


# --- clashes -----------------------------------------------------------------------------------


def test_the_built_in_keeps_its_name(site):
    site.engine("datainf", dist="gradian-ml", entry="builtin")
    site.engine("datainf", dist="rival", entry="rival")
    registry = load_registry()
    assert states(registry) == {"gradian-ml": "ok", "rival": "clash"}
    reason = registry.plugins[1].reason
    assert reason == (
        "engine datainf is also provided by gradian-ml 1.0 (builtin); the built-in one is kept"
    )
    assert registry.find("engine", "datainf").plugin.distribution == "gradian-ml"


def test_strangers_with_one_name_lose_it_both(site):
    site.engine("same", dist="beta")
    site.engine("same", dist="alpha")
    site.engine("other", dist="gamma")
    registry = load_registry()
    assert states(registry) == {"alpha": "clash", "beta": "clash", "gamma": "ok"}
    assert "beta 1.0" in registry.plugins[0].reason
    assert "alpha 1.0" in registry.plugins[1].reason
    assert list(registry.engines) == ["other"]
    with pytest.raises(PluginError, match=r"alpha 1\.0.*beta 1\.0"):
        registry.create("engine", "same")
    assert load_registry(["alpha"]).find("engine", "same").plugin.distribution == "beta"


def test_other_names_of_a_clashing_plugin_stay(site):
    site.engine("datainf", dist="gradian-ml")
    site.plugin(
        """
        @hookimpl
        def gradian_engines():
            for name in ("zeta", "datainf", "alpha"):
                yield EngineSpec(name=name, summary="s", factory="%NAME%:Engine")
        """,
        dist="rival",
    )
    registry = load_registry()
    assert list(registry.engines) == ["alpha", "datainf", "zeta"]
    assert registry.engines["alpha"].plugin.state == "clash"


def test_one_name_for_two_kinds_is_no_clash(site):
    site.plugin(
        """
        @hookimpl
        def gradian_engines():
            yield EngineSpec(name="none", summary="s", factory="m:C")
        @hookimpl
        def gradian_sinks():
            yield SinkSpec(name="none", summary="s", factory="m:C")
        """,
        dist="both",
    )
    registry = load_registry()
    assert states(registry) == {"both": "ok"}
    assert list(registry.sinks) == list(registry.engines) == ["none"]


# --- missing packages --------------------------------------------------------------------------


def test_missing_packages_make_it_unavailable(site):
    site.engine("far", dist="far", spec="requires=('surely_missing',), extra='ekfac'")
    registry = load_registry()
    assert states(registry) == {"far": "unavailable"}
    assert "pip install 'gradian-ml[ekfac]'" in registry.plugins[0].reason
    for use in (registry.create, registry.config_model):
        with pytest.raises(MissingExtraError, match="Engine far needs surely_missing"):
            use("engine", "far")


def test_partly_missing_is_ok_with_a_reason(site):
    site.plugin(
        """
        @hookimpl
        def gradian_engines():
            yield EngineSpec(name="a", summary="s", factory="m:C")
            yield EngineSpec(name="b", summary="s", factory="m:C", requires=("surely_missing",))
        """,
        dist="half",
    )
    (record,) = load_registry().plugins
    assert record.state == "ok"
    assert record.reason.startswith("Engine b needs surely_missing")


# --- making things -----------------------------------------------------------------------------


def test_create_without_options(site):
    site.engine("a", dist="one")
    assert load_registry().create("engine", "a").options is None
    with pytest.raises(UsageError, match="takes no options, but got: damping"):
        load_registry().create("engine", "a", {"damping": 1})


def with_options(site):
    module = site.module(OPTIONS)
    site.engine("a", dist="one", spec=f"config='{module}:Options'")
    return load_registry()


def test_create_with_options(site):
    registry = with_options(site)
    assert registry.create("engine", "a").options.damping == 0.1
    assert registry.create("engine", "a", {"damping": 1}).options.damping == 1.0
    assert set(registry.config_model("engine", "a").model_fields) == {"damping", "seed"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dampign": 1}, "Options of engine a: dampign: unknown key. Did you mean damping?"),
        ({"damping": "0.1"}, "damping: wants a number, not '0.1'"),
        ({"seed": True}, "seed: wants a whole number, not true"),
    ],
)
def test_unfit_options(site, options, message):
    with pytest.raises(UsageError) as caught:
        with_options(site).create("engine", "a", options)
    assert message in caught.value.message
    assert "damping, seed" in caught.value.hint


def test_unknown_names(site):
    site.engine("datainf", dist="one")
    registry = load_registry()
    with pytest.raises(UsageError) as caught:
        registry.create("engine", "datinf")
    assert str(caught.value) == (
        "There is no engine 'datinf'. Did you mean datainf? Installed: datainf."
    )
    with pytest.raises(UsageError, match=r"There is no run reader 'x'. Installed: none."):
        registry.create("run_reader", "x")


def test_unknown_name_points_to_broken_plugins(site):
    site.plugin("raise ValueError", dist="broken")
    with pytest.raises(UsageError, match="gradian plugins list"):
        load_registry().create("engine", "x")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('at import')", "failed: ValueError: at import"),
        ("", "AttributeError"),
        ("def Engine(): raise SystemExit(1)", "Creating engine a failed: SystemExit: 1"),
        ("class Engine: pass", "does not implement BlockEngine"),
    ],
)
def test_failing_implementations_name_their_owner(site, body, message):
    implementation = site.module(body)
    module = site.plugin(
        f"""
        @hookimpl
        def gradian_engines():
            yield EngineSpec(name="a", summary="s", factory="{implementation}:Engine")
        """,
        dist="one",
    )
    with pytest.raises(PluginError, match=message) as caught:
        load_registry().create("engine", "a")
    assert caught.value.owner == f"thing, one 1.0, {module}"


def test_errors_for_people_pass(site):
    implementation = site.module(
        """
        from gradian_core.errors import CannotRunError
        def Engine(): raise CannotRunError("no GPU")
        """
    )
    site.plugin(
        f"""
        @hookimpl
        def gradian_engines():
            yield EngineSpec(name="a", summary="s", factory="{implementation}:Engine")
        """,
        dist="one",
    )
    with pytest.raises(CannotRunError, match=r"^no GPU$"):
        load_registry().create("engine", "a")


def test_a_config_that_is_no_model(site):
    module = site.module("Options = dict")
    site.engine("a", dist="one", spec=f"config='{module}:Options'")
    with pytest.raises(PluginError, match="is no pydantic model"):
        load_registry().config_model("engine", "a")


def test_a_check_is_returned_as_it_is(site):
    site.plugin(
        '''
        from gradian_core.check import check
        from gradian_core.findings import Severity
        @check(severity=Severity.LOW, since="0.1", trips=dict, clean=dict)
        def tiny(examples):
            """Page."""
            return ()
        @hookimpl
        def gradian_checks():
            yield CheckSpec(name="house.tiny", summary="s", factory="%NAME%:tiny")
        ''',
        dist="one",
    )
    check = load_registry().create("check", "house.tiny")
    assert isinstance(check, Check)
    assert check.needs == ("examples",)
