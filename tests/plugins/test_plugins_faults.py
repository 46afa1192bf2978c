"""Each way in which a plugin can be broken; none may take a healthy one down."""

import pytest

from gradian_core.errors import PluginError
from gradian_core.plugins.registry import load_registry

HOOK = "@hookimpl\ndef gradian_engines(): "
ARGUMENTS = "name='bad', summary='s', factory='m:C'"
SPEC = 'EngineSpec(name="bad", summary="s", factory="m:C")'

CHECK_WITH_OPTIONS = """
@hookimpl
def gradian_checks():
    yield CheckSpec(name="x.y", summary="s", factory="m:C", config="m:M")
"""

BROKEN = {
    "import error": ("import surely_not_installed", "cannot be imported: ModuleNotFoundError"),
    "exit at import": ("raise SystemExit(3)", "cannot be imported: SystemExit: 3"),
    "base exception at import": (
        "class E(BaseException): pass\nraise E('boom')",
        "cannot be imported: E: boom",
    ),
    "error that cannot be printed": (
        "class E(Exception):\n def __str__(self): raise ValueError\nraise E",
        "cannot be imported: E",
    ),
    "syntax error": ("def (", "cannot be imported: SyntaxError"),
    "escape in message": ("raise ValueError('a\\x1b[31mb\\nc')", "ValueError: ab c"),
    "no hook": ("x = 1", "implements no hook of gradian.v1"),
    "unmarked hook": (f"def gradian_engines(): return [{SPEC}]", "implements no hook"),
    "misspelt hook": (
        f"@hookimpl\ndef gradian_engine(): return [{SPEC}]",
        "unknown hook gradian_engine. Did you mean gradian_engines?",
    ),
    "wrong signature": (
        f"@hookimpl\ndef gradian_engines(config): return [{SPEC}]",
        "gradian_engines has the wrong signature: hooks of gradian.v1 take no arguments",
    ),
    "wrapper": (
        "@hookimpl(wrapper=True)\ndef gradian_engines():\n return (yield)",
        "gradian_engines may not be a wrapper",
    ),
    "raises when called": (
        "@hookimpl\ndef gradian_engines(): raise RuntimeError('now')",
        "RuntimeError: now",
    ),
    "raises lazily": (
        f"@hookimpl\ndef gradian_engines():\n yield {SPEC}\n raise RuntimeError('later')",
        "RuntimeError: later",
    ),
    "exits lazily": (
        f"@hookimpl\ndef gradian_engines():\n yield {SPEC}\n raise SystemExit",
        "SystemExit",
    ),
    "never ends": (
        f"@hookimpl\ndef gradian_engines():\n while True: yield {SPEC}",
        "gradian_engines declares more than 1000 specs",
    ),
    "one spec, no list": (
        f"@hookimpl\ndef gradian_engines(): return {SPEC}",
        "gradian_engines must return specs, not EngineSpec",
    ),
    "spec of another kind": (
        "@hookimpl\ndef gradian_engines(): yield SinkSpec(name='bad', summary='s', factory='m:C')",
        "gradian_engines must yield EngineSpec, not SinkSpec",
    ),
    "no spec at all": (
        "@hookimpl\ndef gradian_engines(): return ['bad']",
        "gradian_engines must yield EngineSpec, not str",
    ),
    "subclass of a spec": (
        f"class S(EngineSpec): pass\n{HOOK}yield S({ARGUMENTS})",
        "must yield EngineSpec, not S",
    ),
    "twins": (
        f"@hookimpl\ndef gradian_engines():\n yield {SPEC}\n yield {SPEC}",
        "gradian_engines declares bad twice",
    ),
    **{
        f"name {name!r}": (
            f"{HOOK}yield EngineSpec(name={name!r}, summary='s', factory='m:C')",
            "must be only a-z, 0-9",
        )
        for name in ("Bad", "a b", "", "a\x1b[31m", "a\n", "../x", "é", "a" * 101, None, 3)
    },
    "check without family": (
        "@hookimpl\ndef gradian_checks(): yield CheckSpec(name='x', summary='s', factory='m:C')",
        "must be 'family.name'",
    ),
    **{
        f"{key}={value!r}": (
            f"{HOOK}yield EngineSpec(**{{**dict({ARGUMENTS}), {key!r}: {value!r}}})",
            text,
        )
        for key, value, text in (
            ("factory", "no_colon", "must read 'package.module:Name'"),
            ("factory", "os:system('x')", "must read 'package.module:Name'"),
            ("factory", None, "must read 'package.module:Name'"),
            ("config", "m", "must read 'package.module:Model'"),
            ("requires", ["torch"], "must be a tuple"),
            ("requires", ("a.b",), "top-level modules"),
            ("requires", "torch", "must be a tuple"),
            ("extra", "a]; rm", "is not a name"),
            ("summary", " ", "has no summary"),
            ("since", 1, "'since' of bad must be text"),
        )
    },
    "check with options": (
        CHECK_WITH_OPTIONS,
        "x.y has a config, and checks take no options",
    ),
    "oracle": (f"{HOOK}yield EngineSpec({ARGUMENTS}, oracle='m')", "must read 'package.module:f"),
    "metric needs": (
        f"@hookimpl\ndef gradian_metrics(): yield MetricSpec({ARGUMENTS}, needs='luck')",
        "'needs' of bad must be",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_one_broken_plugin_owns_its_failure(site, fault):
    source, reason = BROKEN[fault]
    site.plugin(source, dist="broken-dist", entry="broken")
    site.engine("healthy", dist="healthy-dist")

    registry = load_registry()

    states = {record.name: record for record in registry.plugins}
    assert reason in states["broken"].reason
    assert states["broken"].state == "failed"
    assert (states["broken"].distribution, states["broken"].version) == ("broken-dist", "1.0")
    assert states["broken"].reason.isprintable()
    assert states["thing"].state == "ok"
    assert list(registry.engines) == ["healthy"]


def test_ctrl_c_is_not_swallowed(site):
    site.plugin("raise KeyboardInterrupt", dist="slow")
    with pytest.raises(KeyboardInterrupt):
        load_registry()


def test_strict_raises_with_the_owner(site):
    module = site.plugin("raise ValueError('x')", dist="broken-dist", entry="broken")
    with pytest.raises(PluginError) as caught:
        load_registry(strict=True)
    assert caught.value.owner == f"broken, broken-dist 1.0, {module}"


def test_what_a_plugin_prints_stays_off_stdout(site, capsys):
    site.plugin("print('hello')", dist="chatty")
    load_registry()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hello" in captured.err
