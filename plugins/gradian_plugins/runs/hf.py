"""Runs of transformers' Trainer and of what is built on it: trl, unsloth.

What a run leaves behind depends on its script, so every file is looked for: the state at the
root or in the numerically last checkpoint, the saved arguments, the model card, TensorBoard's
events, the summaries, the adapter's config, and a console's output.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradian_core.runs.artifact import (
    AdapterInfo,
    RunArtifact,
    TrainerLog,
    TrainingConfig,
    Value,
)
from gradian_core.runs.evidence import settle

from ._agreement import adapter_identity, compare_checkpoints
from ._arguments import argument_values, stage_of, stage_of_tags, tool_of
from ._card import Card, card_log, card_values, is_card, read_card
from ._events import EVENTS, read_event_run
from ._fields import fitting_version
from ._files import Remarks, head, json_object, text_of
from ._peft import CONFIG, adapter_versions, read_peft
from ._pickle import read_training_args
from ._places import Places, is_lfs_pointer
from ._printed import has_printed_log, printed_log
from ._results import RESULTS, is_results, merge_results
from ._state import STATE, State, is_state, read_state, trl_metrics

__all__ = ["HFRunReader"]

_ARGUMENTS = "training_args.bin"
_CARD = "README.md"
_TEXTS = frozenset({".txt", ".log", ".out"})
_MOST_TEXT = 64 << 20
_MOST_CHECKPOINTS = 8
_GENERIC, _NAMED = 10, 30
"""Specificity of a plain Trainer, and of trl and unsloth on top of it."""


class HFRunReader:
    """Reads runs of transformers' Trainer, trl and unsloth."""

    def can_read(self, path: Path) -> bool:
        """Whether there is any file that such a run leaves behind."""
        if path.is_file():
            return _kind(path) is not None
        places = Places(path)
        if places.find(STATE, _ARGUMENTS, *RESULTS) or places.matching(*EVENTS):
            return True
        configs = _adapter_files(places)
        if any('"peft_type"' in head(config) or is_lfs_pointer(config) for config in configs[-1:]):
            return True
        card = places.find(_CARD)
        return card is not None and is_card(head(card))

    def read(self, path: Path) -> RunArtifact:
        """Read what there is.

        Raises
        ------
        InputError
            If nothing can be read and a damaged file is the reason.
        """
        parts = _Parts(path, Remarks())
        if path.is_file():
            parts.take_file(path)
        else:
            parts.take_folder(Places(path))
        parts.remarks.insist(parts.of_training or parts.adapter, path)
        return parts.artifact()


def _kind(path: Path) -> str | None:
    suffix = path.suffix.lower()
    if is_lfs_pointer(path):
        return "pointer"
    if is_state(path):
        return "state"
    if suffix == ".json":
        text = head(path)
        if '"peft_type"' in text:
            return "adapter"
        return "results" if is_results(path, text) else None
    if suffix == ".bin":
        return "arguments" if path.name.endswith(".bin") and "args" in path.name else None
    if suffix == ".md":
        return "card" if is_card(head(path)) else None
    if "tfevents" in path.name:
        return "events"
    if suffix in _TEXTS:
        return "text" if has_printed_log(head(path)) else None
    return None


def _adapter_files(places: Places) -> list[Path]:
    """Return the adapter's config where adapters usually lie, or those of other subfolders."""
    for folder in places.folders:
        for config in (folder / CONFIG, folder / "adapter" / CONFIG):
            if config.is_file():
                return [config]
    # epoch_2 before epoch_10
    return sorted(places.matching(f"*/{CONFIG}"), key=lambda p: (len(p.parent.name), p.parent.name))


class _Parts:
    """What was found of a run."""

    def __init__(self, path: Path, remarks: Remarks) -> None:
        self.path, self.remarks = path, remarks
        self.state: State | None = None
        self.log: TrainerLog | None = None
        self.class_name = ""
        self.arguments: dict[str, Any] = {}
        self.arguments_source = _ARGUMENTS
        self.card: Card | None = None
        self.adapter: AdapterInfo | None = None
        self.results: dict[str, Any] = {}
        self.whole_model = False

    @property
    def of_training(self) -> bool:
        """Whether anything was read that training wrote; an adapter alone tells nothing of it."""
        return bool(self.state or self.log or self.arguments or self.card or self.results)

    def take_file(self, path: Path) -> None:
        """Read one file by itself."""
        match _kind(path):
            case "state":
                self._take_state(path)
            case "adapter":
                self._take_adapter(path)
            case "arguments":
                self._take_arguments(path)
            case "card":
                self.card = self.remarks.attempt(path, read_card)
            case "events":
                self._take_events([path])
            case "results":
                self._take_results([path])
            case "text":
                self._take_text(path)
            case _:
                self.remarks.attempt(path, lambda _: None)

    def take_folder(self, places: Places) -> None:
        """Read every file of a folder that is known."""
        if places.borrowed is not None:
            self.remarks.note(f"The adapter's parent {places.borrowed} was read as its run.")
        self._take_states(places)
        if configs := _adapter_files(places):
            self._take_adapter(configs[-1])
        if len(configs) > 1:
            names = ", ".join(config.parent.name for config in configs[:-1])
            self.remarks.note(
                f"Of several adapters {configs[-1].parent.name} was read, not {names}."
            )
        if saved := places.find(_ARGUMENTS):
            self._take_arguments(saved)
        if (card := places.find(_CARD)) and is_card(head(card)):
            self.card = self.remarks.attempt(card, read_card)
        self._take_events(places.matching(*EVENTS))
        found = [file for name in RESULTS if (file := places.find(name))]
        self._take_results(found)
        if self.adapter is None:
            weights = places.find("model.safetensors", "model.safetensors.index.json")
            self.whole_model = weights is not None and places.find("config.json") is not None

    def _take_states(self, places: Places) -> None:
        checkpoints = [folder for _, folder in places.checkpoints[-_MOST_CHECKPOINTS:]]
        folders = dict.fromkeys((*places.state_folders, *checkpoints))
        identities: dict[str, dict[str, Any]] = {}
        read = 0
        for folder in folders:
            path = folder / STATE
            state = self.remarks.attempt(path, read_state) if path.is_file() else None
            if state is None:
                continue
            read += 1
            if folder in checkpoints:
                identities[folder.name] = dict(state.identity) | self._adapter_of(folder)
            if self.state is None or _steps(state) > _steps(self.state):
                self.state, last = state, folder
        ordered = [folder.name for folder in checkpoints if folder.name in identities]
        compare_checkpoints({name: identities[name] for name in ordered}, self.remarks)
        if read > 1 and last != places.given:
            self.remarks.note(f"The log is that of {last.name}, the last of {read} trainer states.")

    def _adapter_of(self, folder: Path) -> dict[str, Any]:
        config = folder / CONFIG
        raw = self.remarks.attempt(config, json_object) if config.is_file() else None
        return adapter_identity(raw or {})

    def _take_state(self, path: Path) -> None:
        self.state = self.remarks.attempt(path, read_state)

    def _take_adapter(self, path: Path) -> None:
        self.adapter = self.remarks.attempt(path, lambda p: read_peft(p, self.remarks))

    def _take_arguments(self, path: Path) -> None:
        if found := self.remarks.attempt(path, read_training_args):
            self.class_name, self.arguments = found
            self.arguments_source = path.name

    def _take_events(self, paths: list[Path]) -> None:
        if not paths:
            return
        events = read_event_run(paths, self.remarks)
        self.log = events.log
        if not self.arguments:
            self.arguments, self.arguments_source = events.arguments, events.source

    def _take_results(self, paths: list[Path]) -> None:
        for path in paths:
            self.results = (self.remarks.attempt(path, json_object) or {}) | self.results

    def _take_text(self, path: Path) -> None:
        text = self.remarks.attempt(path, lambda p: text_of(p, _MOST_TEXT))
        records, total = printed_log(text or "")
        if records:
            if not any("step" in record for record in records):
                self.remarks.note(f"{path.name} prints no steps: its entries are in order only.")
            self.log = TrainerLog(records=tuple(records), max_steps=total, source=path.name)

    # --- the whole

    def artifact(self) -> RunArtifact:
        """Put the parts together."""
        card_says = card_values(self.card) if self.card else {}
        tool = self._tool()
        layers: list[Mapping[str, Value]] = [
            argument_values(self.arguments, self.arguments_source, tool, stage_of(self.class_name))
            if self.arguments
            else {},
            card_says,
            self.state.values if self.state else {},
        ]
        log = self._log(card_says)
        if log is not None:
            layers.append(_unrecorded(tool))
        values, _ = settle([*layers, self._base(), self._stage()])
        self._refuse(values)
        if self.card is not None:
            for problem in self.card.problems:
                self.remarks.note(problem)
        versions = self._versions(tool)
        return RunArtifact(
            path=self.path,
            reader="hf",
            training=TrainingConfig(
                tool=tool,
                version=versions[tool].value if tool in versions else None,
                values=values,
                versions=versions,
            )
            if self.of_training
            else None,
            adapter=self.adapter,
            log=log,
            notes=tuple(self.remarks.notes),
            refusals=self.remarks.refusals,
            specificity=_NAMED if tool in ("trl", "unsloth") else _GENERIC,
        )

    def _tool(self) -> str:
        tool = tool_of(self.class_name)
        mapping = self.adapter.raw.get("auto_mapping") if self.adapter else None
        patched = isinstance(mapping, dict) and mapping.get("unsloth_fixed") is True
        tags = self.card.tags if self.card else set()
        if tool in ("transformers", "trl") and (patched or "unsloth" in tags):
            return "unsloth"
        if tool != "transformers":
            return tool
        built_on_trl = "trl" in tags or (self.card is not None and "trl" in self.card.versions)
        if built_on_trl or (self.state and trl_metrics(self.state.log.records)):
            return "trl"
        return tool

    def _log(self, card_says: dict[str, Value]) -> TrainerLog | None:
        log = self.state.log if self.state else self.log
        if log is None and self.card is not None:
            log = card_log(self.card, card_says)
        return merge_results(log, self.results)

    def _base(self) -> dict[str, Value]:
        if self.adapter is not None and self.adapter.base_model:
            origin = f"{self.adapter.source or CONFIG} (base_model_name_or_path)"
            return {"base_model": Value(self.adapter.base_model, origin, "ran")}
        if self.card is not None and self.card.base_model:
            origin = f"{self.card.name} (base_model)"
            return {"base_model": Value(self.card.base_model, origin, "ran")}
        return {}

    def _stage(self) -> dict[str, Value]:
        stage = stage_of_tags(self.card.tags) if self.card else None
        if self.card is None or stage is None:
            return {}
        return {"stage": Value(stage, f"{self.card.name} (tags)", "ran")}

    def _refuse(self, values: dict[str, Value]) -> None:
        if self.whole_model:
            text = f"{self.path} holds a whole model and no adapter: a full fine-tune, or merged."
            self.remarks.refuse("not_a_lora_run", text)
            values.setdefault("finetuning_type", Value("full", "model.safetensors", "inferred"))
        stage = values.get("stage")
        if stage is not None and stage.value != "sft":
            text = f"{stage.source}: this run is {str(stage.value).upper()}, not supervised."
            self.remarks.refuse("not_sft", text)

    def _versions(self, tool: str) -> dict[str, Value]:
        layers: list[Mapping[str, Value]] = []
        if self.card is not None:
            layers.append(
                {
                    package: Value(version, f"{self.card.name}:{line}", "ran")
                    for package, (version, line) in self.card.versions.items()
                }
            )
        if self.adapter is not None:
            layers.append(adapter_versions(self.adapter))
        if self.arguments:
            source = self.arguments_source
            layers.append(fitting_version("transformers", self.arguments, source))
            if tool in ("trl", "unsloth") and stage_of(self.class_name) == "sft":
                layers.append(fitting_version("trl", self.arguments, source))
        return settle(layers)[0]


def _unrecorded(tool: str) -> dict[str, Value]:
    """Return settings that next to nobody changes, as they are by default."""
    origin = f"default of {tool}; this run records no other"
    return {
        "max_grad_norm": Value(1.0, origin, "default"),
        "logging_nan_inf_filter": Value(tool != "unsloth", origin, "default"),
    }


def _steps(state: State) -> int:
    return state.log.global_step or 0
