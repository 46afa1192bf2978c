"""Facts of a small, healthy fine-tune, for trying checks on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradian_core.audit import samples
from gradian_core.check import FACTS

__all__ = ["demo_facts"]


def demo_facts(n: int = 50, *, only: Iterable[str] | None = None) -> dict[str, Any]:
    """Return facts by name, made by the code that makes real ones.

    Parameters
    ----------
    n
        Rows of the data set.
    only
        Facts that are wanted, all if None; those of the tokenizer take a second to make.
    """
    wanted = FACTS if only is None else set(only)
    makers: dict[str, Callable[[], Any]] = {
        "adapter": samples.adapter,
        "eval_examples": lambda: samples.rows(n=1),
        "eval_tokens": lambda: samples.tokens(n=1),
        "examples": lambda: samples.rows(n=n),
        "log": lambda: samples.log([2.0, 1.5, 1.2], learning_rate=[1e-4, 1e-4, 5e-5]),
        "tokenizer": samples.tokenizer,
        "tokens": lambda: samples.tokens(n=n),
        "training": lambda: samples.training("trl", learning_rate=1e-4, num_train_epochs=1),
    }
    return {name: make() for name, make in makers.items() if name in wanted}
