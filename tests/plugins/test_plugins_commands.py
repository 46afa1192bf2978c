"""``gradian plugins show`` and ``verify``, and the strict mode for authors."""

import pytest

from gradian_core.cli.app import main
from gradian_core.errors import PluginError
from gradian_core.plugins.registry import load_registry

ENGINE = '''
from pydantic import BaseModel
class Options(BaseModel):
    damping: float = 0.1
class Engine:
    """Scores by hand."""
    def __init__(self, options): ...
    def score_block(self, block, queries, context):
        import numpy as np
        return SIGN * queries @ np.concatenate([part for _, part in block.chunks()]).T
    def caveats(self, context): return ()
'''


def declare(site, sign="1"):
    module = site.module(ENGINE.replace("SIGN", sign))
    return site.plugin(
        f"""
        @hookimpl
        def gradian_engines():
            yield EngineSpec(name="hand", summary="scores by hand", factory="{module}:Engine",
                             config="{module}:Options", since="3.1")
        """,
        dist="my-dist",
    )


def test_verify_keeps_count(site, capsys):
    declare(site)
    assert main(["plugins", "verify", "thing"]) == 0
    out = capsys.readouterr().out
    assert "kept    engine:hand:sign" in out
    assert "13 of 13 promises kept" in out
    assert main(["plugins", "verify", "my_dist"]) == 0


def test_verify_fails_with_1_and_says_how(site, capsys):
    declare(site, "-1")
    assert main(["plugins", "verify", "thing"]) == 1
    out = capsys.readouterr().out
    assert "BROKEN  engine:hand:sign" in out
    assert "its opposite" in out
    assert "12 of 13 promises kept" in out


def test_verify_of_a_plugin_that_does_not_load(site, capsys):
    site.plugin("import surely_missing", dist="broken")
    assert main(["plugins", "verify", "thing"]) == 1
    assert "surely_missing" in capsys.readouterr().out


def test_verify_of_a_blocked_plugin(site, capsys, monkeypatch):
    declare(site)
    monkeypatch.setenv("GRADIAN_BLOCK", "thing")
    assert main(["plugins", "verify", "thing"]) == 1
    assert "GRADIAN_BLOCK" in capsys.readouterr().out


def test_verify_strict_raises_with_the_plugins_own_traceback(site, capsys):
    declare(site, "(1 / 0)")
    assert main(["plugins", "verify", "thing", "--strict", "--debug"]) == 3
    err = capsys.readouterr().err
    assert "ZeroDivisionError" in err
    assert "in score_block" in err


def test_unknown_names(site, capsys):
    declare(site)
    for command in ("show", "verify"):
        assert main(["plugins", command, "thnig"]) == 2
        assert "Did you mean thing?" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["thing", "my-dist", "hand"])
def test_show(site, capsys, name):
    declare(site)
    assert main(["plugins", "show", name]) == 0
    out = capsys.readouterr().out
    for text in (
        "engine hand: scores by hand",
        "Scores by hand.",
        "damping  0.1",
        "3.1",
        "my-dist",
    ):
        assert text in out


def test_show_of_what_cannot_be_loaded_says_so(site, capsys):
    site.engine("far", dist="far", spec="requires=('surely_missing',)")
    site.engine("lost", dist="lost", entry="lost", spec="config='surely_missing:Options'")
    site.plugin("raise ValueError('oh no')", dist="bad", entry="bad")
    for name, text in (("far", "needs surely_missing"), ("lost", "No module"), ("bad", "oh no")):
        assert main(["plugins", "show", name]) == 0
        assert text in capsys.readouterr().out


def test_a_hostile_page_is_made_safe(site, capsys):
    site.module("")
    module = site.module('class Sink:\n    """Red \\x1b[31m."""\n    def write(self, r, f): ...')
    site.plugin(
        f"""
        @hookimpl
        def gradian_sinks():
            yield SinkSpec(name="s", summary="a\\x1b[2Jb", factory="{module}:Sink")
        """,
        dist="evil",
    )
    assert main(["plugins", "show", "s"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "ab" in out


def test_strict_by_environment(site, monkeypatch):
    site.plugin("raise ValueError('x')", dist="broken")
    load_registry()
    monkeypatch.setenv("GRADIAN_STRICT", "1")
    with pytest.raises(PluginError, match="cannot be imported") as caught:
        load_registry()
    assert isinstance(caught.value.__cause__, ValueError)
    monkeypatch.setenv("GRADIAN_STRICT", "0")
    load_registry()
