"""Measuring a capability under base and tuned model."""

from __future__ import annotations

from collections.abc import Sequence

from gradian_core.config.models import EvaluationSection
from gradian_core.data.example import Example
from gradian_core.errors import InputError
from gradian_core.evaluation.answers import measure_answers
from gradian_core.evaluation.gate import gate
from gradian_core.evaluation.judge import Judge, place
from gradian_core.evaluation.references import measure_references
from gradian_core.evaluation.result import CapabilityResult, ItemOutcome, Measurement
from gradian_core.evaluation.task import EvalTask, Progress, silent
from gradian_core.model.loaded import LoadedModel
from gradian_core.protocols import LikelihoodMetric, TextMetric
from gradian_core.specs import MetricSpec

__all__ = ["judge_items", "measure", "measure_items"]


def measure_items(
    loaded: LoadedModel,
    eval_examples: Sequence[Example],
    metric: TextMetric | LikelihoodMetric,
    spec: MetricSpec,
    settings: EvaluationSection,
    *,
    seed: int,
    source: str = "the eval set",
    progress: Progress | None = None,
) -> Measurement:
    """Score every eval item under both models.

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
    seed
        Seeds sampling.
    source
        The eval file, for messages.
    progress
        Told about the stages ``base``, ``tuned`` and ``margin``.

    Returns
    -------
    Measurement
        With notes on what limits it.

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
    return Measurement(
        metric=spec.name,
        proxy_used=proxy,
        items=items,
        notes=tuple(notes),
        max_new_tokens=None if proxy else settings.max_new_tokens,
    )


def judge_items(
    measured: Measurement, settings: EvaluationSection, *, name: str, seed: int
) -> CapabilityResult:
    """Let the gate judge the difference between the models; costs no answer.

    Parameters
    ----------
    measured
        What the models did.
    settings
        ``n_bootstrap`` and ``ci_level`` are used.
    name
        Name of the capability.
    seed
        Seeds the bootstrap.

    Returns
    -------
    CapabilityResult
        Copies of an item count once: asking one question twenty times is evidence of one.
    """
    items = measured.items
    pairs = _distinct(items)
    judged = gate(
        [base for base, _ in pairs],
        [tuned for _, tuned in pairs],
        settings,
        seed=seed,
        graded=measured.proxy_used,
    )
    failures = 0 if measured.proxy_used else sum(item.base_score == 0.0 for item in items)
    return CapabilityResult(
        name=name,
        metric=measured.metric,
        proxy_used=measured.proxy_used,
        items=items,
        base=judged.base,
        tuned=judged.tuned,
        delta=judged.delta,
        ci_low=judged.ci_low,
        ci_high=judged.ci_high,
        ci_level=judged.ci_level,
        verdict=judged.verdict,
        base_failures=failures,
        notes=measured.notes,
        n_distinct=len(pairs),
        ci_method=judged.ci_method,
        test=judged.test,
        p_value=judged.p_value,
        tango_low=judged.tango_low,
        tango_high=judged.tango_high,
        reason=judged.reason,
        detectable=judged.detectable,
        max_new_tokens=measured.max_new_tokens,
    )


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
    """Measure and judge at once: :func:`measure_items`, then :func:`judge_items`."""
    measured = measure_items(
        loaded,
        eval_examples,
        metric,
        spec,
        settings,
        seed=seed,
        source=source,
        progress=progress,
    )
    return judge_items(measured, settings, name=name, seed=seed)


def _distinct(items: Sequence[ItemOutcome]) -> list[tuple[float, float]]:
    """Mean base and tuned score of each distinct item, in the order of their first copies."""
    groups: dict[tuple[str, str], list[ItemOutcome]] = {}
    for item in items:
        groups.setdefault(item.content, []).append(item)
    return [
        (
            sum(item.base_score for item in copies) / len(copies),
            sum(item.tuned_score for item in copies) / len(copies),
        )
        for copies in groups.values()
    ]
