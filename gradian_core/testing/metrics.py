"""What a metric promises."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradian_core.plugins.record import Provided
from gradian_core.plugins.registry import Registry
from gradian_core.protocols import LikelihoodMetric, TextMetric
from gradian_core.specs import MetricSpec
from gradian_core.testing.hostile import HOSTILE
from gradian_core.testing.promise import Promise, Test, each, require

__all__ = ["promises_of"]

_ANSWERS = ("Oslo", "42", "Yes.", "It is the capital of Norway.")


def promises_of(registry: Registry, provided: Provided[MetricSpec]) -> Iterator[Promise]:
    """Yield the promises of one metric."""
    spec = provided.spec
    prefix = f"metric:{spec.name}"

    def metric() -> Any:
        return registry.create("metric", spec.name)

    if spec.needs == "likelihood":
        yield from each(prefix, metric, [_LIKELIHOOD])
        return
    yield from each(prefix, metric, _TEXT)
    if spec.reference_is_answer:
        yield from each(prefix, metric, [_ANSWER])


def _score(metric: TextMetric, prediction: str, reference: str) -> float | None:
    """Return the score, None where the metric says that it cannot judge the reference."""
    try:
        found = metric.score(prediction, reference)
    except ValueError as error:
        require(str(error), "A ValueError must say what is wrong with the reference.")
        return None
    require(
        isinstance(found, (int, float)) and 0.0 <= found <= 1.0,
        f"The score of {prediction!r} against {reference!r} is {found!r}, no number in [0, 1].",
    )
    require(
        metric.score(prediction, reference) == found,
        f"Asked again, {prediction!r} scores otherwise.",
    )
    return float(found)


def _range(metric: TextMetric) -> None:
    judged = [_score(metric, said, wanted) for said in _ANSWERS for wanted in _ANSWERS]
    require(any(s is not None for s in judged), f"It can judge none of {', '.join(_ANSWERS)}.")


def _best(metric: TextMetric) -> None:
    for wanted in _ANSWERS:
        own = _score(metric, wanted, wanted)
        if own is None:
            continue
        for said in (*_ANSWERS, ""):
            other = _score(metric, said, wanted)
            require(
                other is None or other <= own,
                f"Against the reference {wanted!r}, {said!r} scores {other} and itself {own}.",
            )


def _bad(metric: TextMetric) -> None:
    for text in HOSTILE:
        _score(metric, text, "42")
        _score(metric, "42", text)


def _likelihood(metric: LikelihoodMetric) -> None:
    unlikely = metric.score(np.array([-4.0, -3.0, -5.0]))
    likely = metric.score(np.array([-0.4, -0.3, -0.5]))
    require(
        math.isfinite(unlikely) and math.isfinite(likely),
        f"The scores {unlikely!r} and {likely!r} must be finite numbers.",
    )
    require(likely >= unlikely, f"The likelier answer scores {likely}, the other {unlikely}.")


_TEXT: list[Test[TextMetric]] = [
    ("range", "scores are numbers from 0 to 1, the same each time", _range),
    ("hostile", "hostile answers get a score; what it cannot judge is a ValueError", _bad),
]
_ANSWER: Test[TextMetric] = ("best", "no answer scores higher than the reference itself", _best)
_LIKELIHOOD: Test[LikelihoodMetric] = (
    "likelihood",
    "a likelier answer does not score lower",
    _likelihood,
)
