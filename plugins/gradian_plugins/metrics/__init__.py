"""The built-in metrics; this module only declares them."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import MetricSpec

__all__ = ["gradian_metrics"]


@hookimpl
def gradian_metrics() -> Iterator[MetricSpec]:
    """Yield the specs of the built-in metrics."""
    yield MetricSpec(
        name="exact_match",
        summary="the whole answer equals the reference, spelling details aside",
        factory="gradian_plugins.metrics.exact_match:ExactMatch",
    )
    yield MetricSpec(
        name="contains",
        summary="the reference occurs in the answer, as whole words",
        factory="gradian_plugins.metrics.contains:Contains",
    )
    yield MetricSpec(
        name="not_contains",
        summary="none of the markers, separated by |, occurs in the answer",
        factory="gradian_plugins.metrics.not_contains:NotContains",
        reference_is_answer=False,
    )
    yield MetricSpec(
        name="loglik",
        summary="mean log-probability of the reference's tokens, in nats (a proxy)",
        factory="gradian_plugins.metrics.loglik:LogLikelihood",
        needs="likelihood",
    )
