"""The evaluation lane: what changed."""

from __future__ import annotations

from dataclasses import replace

from gradian_core.errors import CannotRunError
from gradian_core.evaluation.cache import find_result, result_path, save_result
from gradian_core.evaluation.measure import measure
from gradian_core.evaluation.result import CapabilityResult
from gradian_core.flows.session import Session, counted
from gradian_core.protocols import LikelihoodMetric, TextMetric
from gradian_core.specs import MetricSpec

__all__ = ["measure_capability"]


def measure_capability(
    session: Session, metric: TextMetric | LikelihoodMetric, spec: MetricSpec, *, name: str
) -> CapabilityResult:
    """Measure base and tuned model on the eval data, or take the result from the cache."""
    config, data = session.config, session.eval_dataset
    assert data is not None
    provided = session.registry.metrics[spec.name]
    path = result_path(
        session.cache,
        {
            "model": session.inputs(dataset=data.fingerprint).model_dump(
                mode="json", exclude={"spec"}
            ),
            "metric": [spec.name, provided.owner],
            "evaluation": config.evaluation.model_dump(
                mode="json", exclude={"query_signal", "aggregation", "require_significant"}
            ),
        },
    )
    cached = find_result(path)
    if cached is not None:
        return replace(cached, name=name)
    from gradian_core.model.device import deterministic

    loaded = session.model
    with (
        deterministic(config.seed),
        counted(session.progress, "Base model") as base,
        counted(session.progress, "Tuned model") as tuned,
        counted(session.progress, "Preference margins") as margin,
    ):
        reports = {"base": base, "tuned": tuned, "margin": margin}
        result = measure(
            loaded,
            data,
            metric,
            spec,
            config.evaluation,
            name=name,
            seed=config.seed,
            source=str(data.path),
            progress=lambda stage, done, total: reports[stage](done, total),
        )
    try:
        save_result(path, result)
    except OSError as error:
        raise CannotRunError(
            f"The cache {session.cache} cannot be written: {error.strerror}.",
            hint="Free some disk space, or set cache_dir.",
        ) from error
    return result
