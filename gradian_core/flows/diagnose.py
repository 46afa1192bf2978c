"""From a data set and a run to an audit: seconds, no GPU, no torch, no weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from gradian_core.audit.gather import Facts, Inputs, Missing
from gradian_core.audit.headline import audit_headline
from gradian_core.audit.run import Answer, AuditResult, run_checks
from gradian_core.audit.select import selected
from gradian_core.config.models import MOST, Config
from gradian_core.data.files import Dataset
from gradian_core.errors import UsageError
from gradian_core.findings import Finding, Severity
from gradian_core.plugins.record import State
from gradian_core.plugins.registry import Registry, load_registry
from gradian_core.progress import Progress
from gradian_core.report.assemble import assemble
from gradian_core.report.model import NotDone, Provenance, Report
from gradian_core.report.training_log import TrainingLogReport, series
from gradian_core.runs.resolve import read_run
from gradian_core.text import excerpt

__all__ = ["Diagnosis", "diagnose", "examine"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Diagnosis:
    """An audit with what its report leaves out.

    Parameters
    ----------
    report
        The report.
    result
        The answer of every check.
    dataset
        The training data, None if it was not given.
    summaries
        What each check that was asked for looks at, in a line.
    """

    report: Report
    result: AuditResult
    dataset: Dataset | None
    summaries: Mapping[str, str]


def diagnose(
    config: Config,
    *,
    max_seq_length: int | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    progress: Progress | None = None,
) -> Report:
    """Audit training data, settings and logs of a fine-tune.

    Parameters
    ----------
    config
        At least one of ``dataset``, ``run_dir`` and ``adapter_path``; ``eval_dataset``,
        ``base_model`` and ``tokenizer`` unlock more checks.
    max_seq_length
        Sequence length of the training, which wins over the run's own.
    select, ignore
        Ids and patterns (``data.*``) of the checks to run, and of those to leave out.
    progress
        Where to report; silent if None.

    Raises
    ------
    GradianError
        With the exit code and the words for the user; see the parts.
    """
    return examine(
        config, max_seq_length=max_seq_length, select=select, ignore=ignore, progress=progress
    ).report


def examine(
    config: Config,
    *,
    max_seq_length: int | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    progress: Progress | None = None,
) -> Diagnosis:
    """Do what :func:`diagnose` does, and return the answer of every check with the report."""
    inputs = _inputs(config, max_seq_length)
    registry = load_registry(config.plugins.block)
    names = selected(registry.checks, select, ignore)
    facts = Facts(inputs, partial(read_run, registry=registry), progress)
    # What cannot be read is refused before any check runs.
    _ = facts.run, facts.adapter, facts.examples, facts.eval_examples
    result = run_checks(registry, facts, select, ignore, progress=progress)
    result = replace(result, findings=(*_refusals(facts, registry), *result.findings))
    dataset = facts.dataset
    n_examples = 0 if dataset is None else len(dataset)
    report = assemble(
        examples=() if dataset is None else dataset,
        findings=result.findings,
        not_done=_not_done(result),
        notes=[*facts.notes, *registry.notes, *_lost_plugins(registry)],
        provenance=_provenance(facts, registry, names),
        training_log=_training_log(facts),
    )
    headline = audit_headline(result, n_examples)
    return Diagnosis(
        report=report.model_copy(update={"headline": headline}),
        result=result,
        dataset=dataset,
        summaries={name: registry.checks[name].spec.summary for name in names},
    )


def _inputs(config: Config, max_seq_length: int | None) -> Inputs:
    if not (config.dataset or config.run_dir or config.adapter_path):
        raise UsageError(
            "There is nothing to diagnose.",
            hint="Pass --dataset, the training data, and --run, the run folder; both is best.",
        )
    if max_seq_length is not None and not 1 <= max_seq_length <= MOST:
        raise UsageError(
            f"--max-seq-length must be from 1 to {MOST:,}, not {excerpt(str(max_seq_length), 40)}."
        )
    cache = Path(config.cache_dir)
    # An audit leaves no folder behind that nobody asked for.
    keeps = "cache_dir" in config.model_fields_set or cache.is_dir()
    return Inputs(
        dataset=_path(config.dataset),
        eval_dataset=_path(config.eval_dataset),
        run=_path(config.run_dir),
        adapter=_path(config.adapter_path),
        base_model=config.base_model or None,
        tokenizer=config.tokenizer,
        max_seq_length=max_seq_length,
        cache_dir=cache if keeps else None,
    )


def _path(text: str | None) -> Path | None:
    return Path(text).expanduser() if text else None


def _refusals(facts: Facts, registry: Registry) -> Iterator[Finding]:
    """Yield why a run cannot be judged, where no check says so."""
    if isinstance(facts.run, Missing):
        return
    for name, reason in sorted(facts.run.refusals.items()):
        if f"config.{name}" not in registry.checks:
            yield Finding(
                id=f"run.{name}",
                severity=Severity.MEDIUM,
                title=f"The run {facts.run.path.name} cannot be judged as it is",
                detail=reason,
            )


def _training_log(facts: Facts) -> TrainingLogReport | None:
    log = facts.log
    if isinstance(log, Missing):
        return None
    never = np.zeros(len(log.step), dtype=np.bool_)
    found = (
        series("loss", log.step, log.loss, log.loss_bad),
        series("eval_loss", log.eval_step, log.eval_loss, log.eval_bad),
        series("learning_rate", log.step, log.learning_rate, never),
        series("grad_norm", log.step, log.grad_norm, log.grad_bad),
    )
    return TrainingLogReport(
        steps=log.global_step,
        planned=log.max_steps,
        epochs=log.epochs_done,
        series=tuple(one for one in found if one is not None),
    )


def _lost_plugins(registry: Registry) -> Iterator[str]:
    for plugin in registry.plugins:
        if plugin.state in {State.FAILED, State.INCOMPATIBLE, State.CLASH}:
            yield f"Plugin {plugin.owner} is not in use ({plugin.state}): {plugin.reason}"


def _not_done(result: AuditResult) -> list[NotDone]:
    return [
        NotDone(what=outcome.check, why=_why(outcome.why, outcome.unlock))
        for outcome in (*result.of(Answer.FAILED), *result.of(Answer.NOT_ASSESSED))
    ]


def _why(why: str, unlock: Sequence[str]) -> str:
    return f"{why} Unlocked by {' and '.join(unlock)}." if unlock else why


def _provenance(facts: Facts, registry: Registry, names: Sequence[str]) -> Provenance:
    evals = facts.eval_dataset
    dataset = facts.dataset
    limit = None if isinstance(facts.training, Missing) else facts.training.get("max_seq_length")
    return Provenance(
        result={
            "dataset": None if dataset is None else dataset.fingerprint,
            "eval_dataset": None if evals is None else evals.fingerprint,
            "max_seq_length": facts.inputs.max_seq_length or limit,
            "checks": {name: registry.checks[name].owner for name in names},
        }
    )
