"""Measuring a capability under base and tuned model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gradian_core.config.models import EvaluationSection
from gradian_core.data.example import Example
from gradian_core.errors import InputError
from gradian_core.evaluation.answers import measure_answers
from gradian_core.evaluation.gate import NOT_SIGNIFICANT, gate
from gradian_core.evaluation.judge import Judge, place
from gradian_core.evaluation.references import measure_references
from gradian_core.evaluation.result import CapabilityResult
from gradian_core.evaluation.task import EvalTask, Progress, silent
from gradian_core.model.loaded import LoadedModel
from gradian_core.protocols import LikelihoodMetric, TextMetric
from gradian_core.specs import MetricSpec

__all__ = ["measure"]


def measure(
    loaded: LoadedModel,
    eval_examples: Sequence[Example],
    metric: TextMetric | LikelihoodMetric,
    spec: MetricSpec,
    settings: EvaluationSection,
    *,
    name: str,
    seed: int,
    source: str = "the eval set",
    progress: Progress | None = None,
) -> CapabilityResult:
    """Score every eval item under both models, and judge the difference.

    Parameters
    ----------
    loaded
        One set of weights; the base model is the tuned one with its adapter off.
    eval_examples
        Eval rows in file order; the last assistant turn is the reference.
    metric, spec
        The metric and what it declared.
    settings
        The ``evaluation`` section.
    name
        Name of the capability.
    seed
        Seeds sampling and the bootstrap.
    source
        The eval file, for messages.
    progress
        Told about the stages ``base``, ``tuned`` and ``margin``.

    Returns
    -------
    CapabilityResult
        With notes on why no change could be shown, and on what limits the measurement.

    Raises
    ------
    InputError
        If there is no row, or a row has no answer, does not fit into the model's context, or
        cannot be judged by the metric.
    PluginError
        If the metric fails or gives a score out of range.
    CannotRunError
        If memory does not suffice or the model gives NaN.
    """
    if not eval_examples:
        raise InputError(f"{source} has no rows, so no capability can be measured.")
    for example in eval_examples:
        if example.answer is None:
            raise InputError(
                f"{place(source, example)} has no answer to compare with.",
                hint="Give each eval row a completion, or an assistant turn at its end.",
            )
    task = EvalTask(
        loaded=loaded,
        examples=eval_examples,
        judge=Judge(metric=metric, spec=spec, source=source),
        settings=settings,
        seed=seed,
        progress=progress or silent,
    )
    proxy = spec.needs == "likelihood"
    items, notes = measure_references(task) if proxy else measure_answers(task)
    judged = gate(
        [item.base_score for item in items],
        [item.tuned_score for item in items],
        settings,
        seed=seed,
    )
    reasons = [judged.reason] if judged.verdict == NOT_SIGNIFICANT else []
    return CapabilityResult(
        name=name,
        metric=spec.name,
        proxy_used=proxy,
        items=items,
        base=judged.base,
        tuned=judged.tuned,
        delta=judged.delta,
        ci_low=judged.ci_low,
        ci_high=judged.ci_high,
        ci_level=judged.ci_level,
        verdict=judged.verdict,
        base_failures=0 if proxy else sum(item.base_score == 0.0 for item in items),
        notes=(*reasons, *_repeats(eval_examples), *notes),
    )


def _repeats(examples: Sequence[Example]) -> list[str]:
    counts = Counter(example.id.partition("-")[0] for example in examples)
    repeated = len(examples) - len(counts)
    note = (
        f"{repeated} of {len(examples)} eval items repeat another one. Each copy counts, so the "
        "interval is narrower than the evidence allows."
    )
    return [note] if repeated else []
