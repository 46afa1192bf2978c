"""Errors that are written for people.

Every error that a user can cause derives from :class:`GradianError`. It says what is wrong,
where (file, line, row or key) and what to do about it, and it carries the exit code that the
command line ends with. Anything else that escapes is a bug of ours.
"""

from __future__ import annotations

__all__ = [
    "CannotRunError",
    "GradianError",
    "InputError",
    "MissingExtraError",
    "PluginError",
    "UsageError",
]


class GradianError(Exception):
    """Base of every error with a message for people.

    Parameters
    ----------
    message
        One or two sentences: what is wrong and where.
    hint
        What the reader can do about it, as a sentence of its own.
    """

    exit_code = 4

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class UsageError(GradianError):
    """A flag, a config key or a combination of them is wrong (exit code 2)."""

    exit_code = 2


class InputError(GradianError):
    """A file or folder that was handed in is missing, malformed or unsuitable (exit code 2)."""

    exit_code = 2


class CannotRunError(GradianError):
    """The input is fine, but this machine or this run cannot do the work (exit code 3)."""

    exit_code = 3


class MissingExtraError(CannotRunError):
    """A feature needs packages that are not installed; the message names the extra."""

    def __init__(self, feature: str, packages: tuple[str, ...], extra: str | None) -> None:
        hint = (
            f"Install it with: pip install 'gradian-ml[{extra}]'."
            if extra
            else f"Install it with: pip install {' '.join(packages)}."
        )
        needed = ", ".join(packages)
        super().__init__(f"{feature} needs {needed}, which is not installed.", hint=hint)


class PluginError(GradianError):
    """A plugin could not be found, loaded or did not keep its contract (exit code 3).

    Parameters
    ----------
    owner
        The plugin's entry point, distribution and version, as far as known.
    """

    exit_code = 3

    def __init__(self, message: str, *, owner: str | None = None, hint: str | None = None) -> None:
        super().__init__(f"{message} (plugin {owner})" if owner else message, hint=hint)
        self.owner = owner
