"""The evaluation lane: what changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gradian_core.__about__ import __version__
from gradian_core.data.files import Dataset
from gradian_core.errors import CannotRunError
from gradian_core.evaluation.cache import find_measurement, measurement_path, save_measurement
from gradian_core.evaluation.measure import judge_items, measure_items
from gradian_core.evaluation.result import CapabilityResult, Measurement
from gradian_core.flows.session import Session, counted
from gradian_core.protocols import LikelihoodMetric, TextMetric
from gradian_core.specs import MetricSpec

__all__ = ["measure_capability"]

_ANSWERS = {"batch_size", "greedy", "max_new_tokens"}
"""Settings that can change an answer; the others only judge or use the answers."""


def measure_capability(
    session: Session, metric: TextMetric | LikelihoodMetric, spec: MetricSpec, *, name: str
) -> CapabilityResult:
    """Measure base and tuned model on the eval data, and let the gate judge the difference.

    The answers come from the cache if the same question has been asked before.
    """
    config, data = session.config, session.eval_dataset
    assert data is not None
    path = _path(session, spec, data)
    notes: list[str] = []
    measured = find_measurement(path, notes)
    if measured is None:
        measured = _measure(session, metric, spec, data)
        try:
            save_measurement(path, measured)
        except OSError as error:
            raise CannotRunError(
                f"{path} cannot be written: {error.strerror}.",
                hint="Free some space, or name another folder with --cache-dir.",
            ) from error
    judged = judge_items(measured, config.evaluation, name=name, seed=config.seed)
    return replace(judged, notes=(*judged.notes, *notes))


def _path(session: Session, spec: MetricSpec, data: Dataset) -> Path:
    model = session.inputs(dataset=data.fingerprint)
    return measurement_path(
        session.cache,
        {
            "gradian": __version__,
            "model": model.model_dump(mode="json", exclude={"spec", "adapter_scale"}),
            "metric": [spec.name, session.registry.metrics[spec.name].owner],
            "evaluation": session.config.evaluation.model_dump(mode="json", include=_ANSWERS),
        },
    )


def _measure(
    session: Session, metric: TextMetric | LikelihoodMetric, spec: MetricSpec, data: Dataset
) -> Measurement:
    from gradian_core.model.device import deterministic

    config, loaded = session.config, session.model
    with (
        deterministic(config.seed),
        counted(session.progress, "Base model") as base,
        counted(session.progress, "Tuned model") as tuned,
        counted(session.progress, "Preference margins") as margin,
    ):
        reports = {"base": base, "tuned": tuned, "margin": margin}
        return measure_items(
            loaded,
            data,
            metric,
            spec,
            config.evaluation,
            seed=config.seed,
            source=str(data.path),
            progress=lambda stage, done, total: reports[stage](done, total),
        )
