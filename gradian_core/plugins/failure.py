"""A plugin's failure has an owner and stays with it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gradian_core.errors import GradianError, PluginError
from gradian_core.text import excerpt

__all__ = ["describe", "guard"]


def describe(error: BaseException) -> str:
    """Return an exception as one safe line; its own ``__str__`` may fail."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a plugin's exception class is a plugin's code too
        text = ""
    return excerpt(f"{name}: {text}" if text.strip() else name, 300)


@contextlib.contextmanager
def guard(owner: str, doing: str) -> Iterator[None]:
    """Turn whatever a plugin raises into a :class:`~gradian_core.errors.PluginError`.

    Errors that are already written for people pass, and so does Ctrl-C. The original is kept
    as the cause.

    Parameters
    ----------
    owner
        See :attr:`gradian_core.plugins.record.PluginRecord.owner`.
    doing
        What was going on, such as ``"Engine datainf"``.

    Raises
    ------
    PluginError
        For everything else, ``SystemExit`` included: a plugin does not end the program.
    """
    try:
        yield
    except (GradianError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise PluginError(f"{doing} failed: {describe(error)}", owner=owner) from error
