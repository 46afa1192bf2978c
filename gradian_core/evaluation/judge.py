"""Asking a metric for a score, and holding it to its contract."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from gradian_core.data.example import Example
from gradian_core.errors import InputError, PluginError
from gradian_core.protocols import LikelihoodMetric, TextMetric
from gradian_core.specs import MetricSpec

if TYPE_CHECKING:
    from gradian_core.protocols import FloatArray

__all__ = ["Judge", "place"]


def place(source: str, example: Example) -> str:
    """Name an eval row for messages."""
    return f"{source}, row {example.row} (counted from 0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A metric with its name, and the file whose rows it judges.

    A metric says with :class:`ValueError` that it cannot judge a reference; that is the eval
    file's fault. Any other exception, and a score outside its range, is the metric's.

    Parameters
    ----------
    metric
        The plugin's object.
    spec
        What it declared.
    source
        Name of the eval file.
    """

    metric: TextMetric | LikelihoodMetric
    spec: MetricSpec
    source: str

    def text(self, prediction: str, example: Example) -> float:
        """Score an answer against the row's reference: in [0, 1]."""
        score = self._ask(lambda: self.metric.score(prediction, example.answer), example)  # type: ignore[call-arg, arg-type]
        if not 0.0 <= score <= 1.0:
            raise self._broken(f"gave {score} for {place(self.source, example)}, not within [0, 1]")
        return score

    def likelihood(self, logprobs: FloatArray, example: Example) -> float:
        """Score ``(t,)`` log-probabilities of the row's reference."""
        return self._ask(lambda: self.metric.score(logprobs), example)  # type: ignore[call-arg, arg-type]

    def _ask(self, score: Callable[[], Any], example: Example) -> float:
        where = place(self.source, example)
        try:
            value = score()
        except ValueError as error:
            raise InputError(
                f"{where}: the metric {self.spec.name} cannot judge it: {error}.",
                hint="Correct or remove the row, or choose another evaluation.metric.",
            ) from error
        except Exception as error:
            raise self._broken(f"failed on {where}: {type(error).__name__}: {error}") from error
        if not isinstance(value, Real) or not math.isfinite(value):
            raise self._broken(f"gave {value!r} for {where}, which is not a finite number")
        return float(value)

    def _broken(self, what: str) -> PluginError:
        return PluginError(f"The metric {self.spec.name} {what}.", owner=self.spec.factory)
