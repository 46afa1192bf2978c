"""The command ``gradian``.

Commands are registered as import strings with their help beside them, so that ``--help`` and a
mistyped command import none of them, let alone torch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from gradian_core.__about__ import __version__
from gradian_core.cli import failures, streams

__all__ = ["build_app", "main"]

_HELP = (
    "Find out which training examples, or which setting, made a LoRA fine-tune worse at something."
)
_EPILOGUE = (
    "Exit codes: 0 fine, 1 findings at or above a limit, 2 wrong usage or input, 3 cannot be "
    "done here, 4 error in gradian, 130 interrupted. With --debug, or GRADIAN_DEBUG=1, errors "
    "come with their traceback."
)
_COMMANDS = {
    "attribute": "Attribute a capability change to training data and write a report.",
    "counterfactual": "Retrain without the accused rows, to prove a verdict or not.",
    "demo": "Run the whole analysis on a tiny built-in model; no GPU, no network.",
    "diagnose": "Check training data, settings and logs for known faults; no GPU, no torch.",
    "doctor": "Check packages, devices, plugins and disk.",
    "explain": "Show which part of a training row harmed an eval item.",
    "index": "Build the per-example gradient index: expensive, cached, resumable.",
    "init-config": "Write a starter config file.",
    "show-index": "Print what an index was built from.",
    "train": "Fine-tune a LoRA adapter, as section train of the config says.",
    "version": "Print the installed version.",
}
_CHECK_COMMANDS = {
    "list": "List the installed checks, what they look at and what they need.",
    "show": "Print the page of one check.",
}
_CONFIG_COMMANDS = {
    "schema": "Print a JSON schema of gradian.yaml for editors, with the plugins installed.",
}
_PLUGIN_COMMANDS = {
    "list": "List installed plugins, what they provide and what is wrong.",
    "new": "Write a whole package with one working plugin, to be edited.",
    "show": "Print what a plugin provides: its documentation, options and needs.",
    "verify": "Test whether a plugin keeps what every plugin promises; exit with 1 if not.",
}


def build_app() -> App:
    """Return the command line with all commands, none of them imported."""
    app = App(
        name="gradian",
        help=_HELP,
        help_epilogue=_EPILOGUE,
        version=__version__,
        # --no-force and the like would double the help for nothing.
        default_parameter=Parameter(negative=()),
        help_formatter="default" if streams.is_terminal(sys.stdout) else "plain",
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
    )
    for name, text in _COMMANDS.items():
        function = name.replace("-", "_")
        app.command(f"gradian_core.cli.{function}:{function}", name=name, help=text)
    # 'gradian checks' alone lists them; the function only passes on, to import nothing here.
    checks = App(name="checks", help="See which checks are installed, and what each is about.")
    checks.default(_checks)
    for name, text in _CHECK_COMMANDS.items():
        checks.command(f"gradian_core.cli.checks:{name}_checks", name=name, help=text)
    app.command(checks)
    config = App(name="config", help="What gradian.yaml may hold.")
    for name, text in _CONFIG_COMMANDS.items():
        config.command(f"gradian_core.cli.config:{name}_config", name=name, help=text)
    app.command(config)
    plugins = App(
        name="plugins", help="See which plugins are installed; write and examine your own."
    )
    for name, text in _PLUGIN_COMMANDS.items():
        plugins.command(f"gradian_core.cli.plugins:{name}_plugins", name=name, help=text)
    app.command(plugins)
    return app


def _checks(*, json: bool = False) -> int:
    """See which checks are installed, and what each is about.

    Parameters
    ----------
    json
        Print JSON.
    """
    from gradian_core.cli.checks import list_checks

    return list_checks(json=json)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; nothing escapes.

    Parameters
    ----------
    argv
        Arguments without the program's name; ``sys.argv[1:]`` if None.
    """
    streams.prepare()
    try:
        return _run(argv)
    finally:
        streams.finish()


def _run(argv: Sequence[str] | None) -> int:
    tokens = list(sys.argv[1:] if argv is None else argv)
    debug = os.environ.get("GRADIAN_DEBUG", "0") not in {"", "0"}
    if "--debug" in tokens:
        tokens.remove("--debug")
        debug = True
    try:
        result = build_app()(tokens)
        streams.flush()
    except BrokenPipeError:
        # The reader, such as head, has what it wanted.
        return failures.CLOSED_PIPE
    except SystemExit as error:
        # rich turns a closed pipe into an exit of its own.
        if isinstance(error.__context__, BrokenPipeError):
            return failures.CLOSED_PIPE
        return failures.show(error, debug=debug)
    except CycloptsError as error:
        return failures.show(failures.usage(error), debug=debug)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last resort
        return failures.show(error, debug=debug)
    return result if isinstance(result, int) else 0
