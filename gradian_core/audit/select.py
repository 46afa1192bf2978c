"""Which checks to run: ids and patterns such as ``data.*``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from gradian_core.errors import UsageError
from gradian_core.text import did_you_mean, excerpt

__all__ = ["selected"]


def selected(
    names: Iterable[str], select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the names that are wanted, sorted.

    Parameters
    ----------
    names
        Ids of all checks.
    select
        Ids and patterns of those to run; all if empty.
    ignore
        Ids and patterns of those to leave out; they win.

    Raises
    ------
    UsageError
        For an id or a pattern that matches no check.
    """
    known = sorted(names)
    chosen = _matching(known, select, "--select") if select else set(known)
    return tuple(sorted(chosen - _matching(known, ignore, "--ignore")))


def _matching(known: Sequence[str], patterns: Sequence[str], flag: str) -> set[str]:
    found: set[str] = set()
    for pattern in patterns:
        matching = {name for name in known if fnmatchcase(name, pattern)}
        if not matching:
            raise UsageError(
                f"{flag} {excerpt(pattern, 80)} matches no check.",
                hint=f"{did_you_mean(pattern, known) or ''} See 'gradian checks'.".strip(),
            )
        found |= matching
    return found
