"""One run out of what all run readers say about a path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gradian_core.errors import GradianError, InputError
from gradian_core.plugins.failure import guard
from gradian_core.plugins.registry import Registry
from gradian_core.runs.artifact import AdapterInfo, RunArtifact, TrainerLog, TrainingConfig
from gradian_core.runs.derive import derived
from gradian_core.runs.evidence import rank, settle

__all__ = ["merge_runs", "read_run"]

_TOLD = ("loss", "eval_loss", "learning_rate", "grad_norm")


def read_run(path: Path, registry: Registry) -> RunArtifact:
    """Ask every run reader and put their answers together.

    Several readers may know one folder: an axolotl run has the files of transformers' Trainer as
    well. The one that knows the tool best names it; settings come from the best evidence
    (:func:`gradian_core.runs.evidence.settle`), each with its source.

    Parameters
    ----------
    path
        A run folder, a checkpoint, an adapter folder or a single file.
    registry
        The installed plugins.

    Raises
    ------
    InputError
        If there is no such path, no reader knows it, or none could read it.
    """
    if not path.exists():
        raise InputError(
            f"run: there is no file or folder {path}.",
            hint="Give the folder that the trainer wrote, or leave it out.",
        )
    runs: list[RunArtifact] = []
    failures: list[str] = []
    for name, provided in registry.run_readers.items():
        try:
            reader = registry.create("run_reader", name)
            with guard(provided.owner, f"Run reader {name}"):
                if reader.can_read(path):
                    runs.append(reader.read(path))
        except GradianError as error:
            # one reader's failure must not keep the others from what they can read
            failures.append(str(error))
    if not runs and failures:
        raise InputError(f"run: {path} could not be read. {' '.join(dict.fromkeys(failures))}")
    if not runs:
        known = ", ".join(registry.run_readers) or "none"
        raise InputError(
            f"run: no run reader knows {path}.", hint=f"Installed run readers: {known}."
        )
    merged = merge_runs(path, runs)
    return replace(merged, notes=tuple(dict.fromkeys((*merged.notes, *failures))))


def merge_runs(path: Path, runs: Sequence[RunArtifact]) -> RunArtifact:
    """Merge what several readers said about one run; missing parts come from the others.

    Parameters
    ----------
    path
        What was read.
    runs
        At least one artifact.
    """
    ordered = sorted(runs, key=lambda run: (-run.specificity, run.reader))
    log, notes = _log(ordered)
    adapter = _adapter(ordered)
    refusals = {name: text for run in reversed(ordered) for name, text in run.refusals.items()}
    if adapter is not None and adapter.peft_type.upper() == "LORA" and adapter.basis == "ran":
        # a config may forget its adapter; the adapter itself is there
        refusals.pop("not_a_lora_run", None)
    training = _training(ordered)
    if training is not None:
        training = replace(training, values=derived(training.values, log))
    return RunArtifact(
        path=path,
        reader=ordered[0].reader,
        training=training,
        adapter=adapter,
        log=log,
        notes=tuple(dict.fromkeys(note for run in ordered for note in (*run.notes, *notes))),
        refusals=refusals,
        specificity=ordered[0].specificity,
        readers=tuple(run.reader for run in ordered),
    )


def _training(ordered: Sequence[RunArtifact]) -> TrainingConfig | None:
    known = [run.training for run in ordered if run.training is not None]
    if not known:
        return None
    best = known[0]
    values, requested = settle(training.values for training in known)
    for training in known:
        for name, value in training.requested.items():
            if name in values:
                requested.setdefault(name, value)
    versions, _ = settle(training.versions for training in known)
    version = versions.get(best.tool)
    return TrainingConfig(
        tool=best.tool,
        version=best.version or (version.value if version else None),
        values=values,
        requested=requested,
        unknown_keys=tuple(key for training in known for key in training.unknown_keys),
        versions=versions,
    )


def _adapter(ordered: Sequence[RunArtifact]) -> AdapterInfo | None:
    adapters = [run.adapter for run in ordered if run.adapter is not None]
    return min(adapters, key=lambda adapter: rank(adapter.basis), default=None)


def _log(ordered: Sequence[RunArtifact]) -> tuple[TrainerLog | None, list[str]]:
    """Return the log that says most, completed from the others, and what was left aside."""
    logs = [run.log for run in ordered if run.log is not None]
    if not logs:
        return None, []
    best = max(logs, key=_told)
    others = [log for log in logs if log is not best]
    for other in others:
        best = TrainerLog(
            records=best.records,
            global_step=other.global_step if best.global_step is None else best.global_step,
            max_steps=other.max_steps if best.max_steps is None else best.max_steps,
            epoch=other.epoch if best.epoch is None else best.epoch,
            finished=other.finished if best.finished is None else best.finished,
            source=best.source,
        )
    aside = [str(log.source) for log in others if log.source and _told(log)]
    if not aside:
        return best, []
    return best, [f"The log is that of {best.source}; {', '.join(aside)} says less."]


def _told(log: TrainerLog) -> int:
    return sum(key in record for record in log.records for key in _TOLD)
