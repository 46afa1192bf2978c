"""``gradian_run.json``, the record that Gradian's callback writes from inside a run."""

from __future__ import annotations

from pathlib import Path

from gradian_core.runs.artifact import (
    AdapterInfo,
    RunArtifact,
    TrainerLog,
    TrainingConfig,
    Value,
)
from gradian_core.runs.evidence import found, settle
from gradian_core.runs.gradian_run import GRADIAN_RUN, GradianRun, read_gradian_run
from gradian_core.runs.settings import SETTINGS

from ._arguments import argument_values, stage_of
from ._files import Remarks, head
from ._peft import described_adapter, has_weights
from ._places import Places

__all__ = ["GradianRunReader"]

_NAMES = (GRADIAN_RUN, "gradian/run.json")
_SPECIFICITY = 90


class GradianRunReader:
    """Reads Gradian's own record of a run."""

    def can_read(self, path: Path) -> bool:
        """Whether there is such a record."""
        found_ = _record(path)
        return found_ is not None and '"gradian-run"' in head(found_)

    def read(self, path: Path) -> RunArtifact:
        """Read the record.

        Raises
        ------
        InputError
            If it is damaged.
        """
        remarks = Remarks()
        file = _record(path)
        run = remarks.attempt(file, read_gradian_run) if file else None
        remarks.insist(run, path)
        if run is None or file is None:
            return RunArtifact(
                path=path,
                reader="gradian",
                notes=tuple(remarks.notes),
                refusals=remarks.refusals,
                specificity=_SPECIFICITY,
            )
        if run.adapter is None:
            text = f"{file.name} records no adapter: the whole model was trained."
            remarks.refuse("not_a_lora_run", text)
        return RunArtifact(
            path=path,
            reader="gradian",
            training=_training(run, file.name),
            adapter=_adapter(run, file),
            log=TrainerLog(**dict(run.log), source=file.name) if run.log.records else None,
            notes=tuple(remarks.notes),
            refusals=remarks.refusals,
            specificity=_SPECIFICITY,
        )


def _record(path: Path) -> Path | None:
    if path.is_file():
        return path if path.suffix.lower() == ".json" else None
    return Places(path).find(*_NAMES)


def _training(run: GradianRun, source: str) -> TrainingConfig:
    stage = stage_of(run.arguments_class or "")
    known = {name: value for name, value in run.settings.items() if name in SETTINGS}
    further = {
        "base_model": run.base_model,
        "chat_template": run.chat_template,
        "world_size": run.world_size,
        "has_eval_set": True if run.eval_data else None,
    }
    further = {name: value for name, value in further.items() if value is not None}
    values, _ = settle(
        [
            found(known, source, "ran"),
            found(further, source, "ran"),
            argument_values(run.arguments, source, run.tool, stage),
        ]
    )
    versions = {name: Value(version, source, "ran") for name, version in run.versions.items()}
    return TrainingConfig(
        tool=run.tool, version=run.versions.get(run.tool), values=values, versions=versions
    )


def _adapter(run: GradianRun, file: Path) -> AdapterInfo | None:
    if run.adapter is None:
        return None
    base = run.adapter.get("base_model_name_or_path") or run.base_model
    # gradian train writes the adapter beside the record, other trainers into the same folder
    places = (file.parent, file.parent / "adapter")
    folder = next((place for place in places if has_weights(place)), file.parent)
    return described_adapter(folder, run.adapter, f"{file.name} (adapter)", base, "ran")
