"""One promise of a plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from gradian_core.errors import GradianError
from gradian_core.plugins.failure import describe

__all__ = ["BrokenPromise", "Promise", "Test", "each", "require"]

Thing = TypeVar("Thing")
Test = tuple[str, str, Callable[[Thing], None]]
"""Last part of a promise's id, the promise in a line, and its test of a thing."""


class BrokenPromise(AssertionError):  # noqa: N818 - a failed test, as pytest knows it
    """A promise that was not kept; the message says how, as a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Something that a plugin promises, and the test of it.

    Parameters
    ----------
    id
        ``kind:name:promise``, such as ``engine:bm25:sign``.
    says
        The promise in a line.
    test
        Raises whatever it likes where the promise is broken.
    """

    id: str
    says: str
    test: Callable[[], None]

    def __str__(self) -> str:
        return self.id

    def keep(self) -> None:
        """Run the test.

        Raises
        ------
        BrokenPromise
            If the promise is broken, whatever the plugin raised; its own error is the cause.
        """
        try:
            self.test()
        except (KeyboardInterrupt, BrokenPromise):
            raise
        except GradianError as error:
            raise BrokenPromise(str(error)) from error
        except BaseException as error:
            raise BrokenPromise(f"It raised {describe(error)}.") from error


def each(prefix: str, make: Callable[[], Thing], tests: Iterable[Test[Thing]]) -> Iterator[Promise]:
    """Yield the promises of a thing, which is made anew for each of them."""
    for key, says, test in tests:
        yield Promise(id=f"{prefix}:{key}", says=says, test=partial(_ask, test, make))


def _ask(test: Callable[[Thing], None], make: Callable[[], Thing]) -> None:
    test(make())


def require(holds: object, otherwise: str) -> None:
    """Raise :class:`BrokenPromise` unless something holds."""
    if not holds:
        raise BrokenPromise(otherwise)
