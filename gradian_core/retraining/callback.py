"""A callback for anyone's Trainer that records what a run can tell only while it runs.

It needs no other change to a training script::

    trainer = SFTTrainer(..., callbacks=[GradianCallback()])

and works with ``transformers.Trainer`` and everything built on it (trl, unsloth, axolotl).
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from gradian_core.runs.gradian_run import (
    GRADIAN_RUN,
    CollatedRow,
    DataRecord,
    GradianRun,
    LogRecord,
    write_gradian_run,
)

__all__ = ["GradianCallback"]

_PACKAGES = (
    "accelerate", "axolotl", "bitsandbytes", "datasets", "gradian-ml", "peft", "tokenizers",
    "torch", "transformers", "trl", "unsloth",
)  # fmt: skip
_ROWS = 2
_PRIVATE = ("token", "logging_dir", "output_dir", "run_name", "hub_", "local_rank")
"""Arguments that hold names of machines, folders and accounts, or secrets."""


class GradianCallback(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Writes ``gradian_run.json`` at the start of training, at every checkpoint and at the end.

    Nothing that goes wrong here stops the training: it is said once, as a warning.

    Parameters
    ----------
    path
        File to be written; None for ``gradian_run.json`` in the trainer's ``output_dir``.
    settings
        Further settings under the names of :mod:`gradian_core.runs.settings`.
    base_model
        The base model's name; None for the one that PEFT knows.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        base_model: str | None = None,
    ) -> None:
        self._path = None if path is None else Path(path)
        self._settings = dict(settings or {})
        self._base = base_model
        self._run: GradianRun | None = None
        self._warned = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Record arguments, model, data and the first rows."""
        self._attempt(args, state, kwargs)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Record the log so far."""
        self._attempt(args, state, kwargs)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Record the whole log."""
        self._attempt(args, state, kwargs, finished=True)

    def _attempt(
        self, args: Any, state: Any, kwargs: Mapping[str, Any], *, finished: bool = False
    ) -> None:
        if not state.is_world_process_zero:
            return
        try:
            if self._run is None:
                self._run = self._first(args, kwargs)
            log = LogRecord(
                records=tuple(_plain(state.log_history)),
                global_step=state.global_step,
                max_steps=state.max_steps,
                epoch=state.epoch,
                finished=finished,
            )
            path = self._path or Path(args.output_dir) / GRADIAN_RUN
            path.parent.mkdir(parents=True, exist_ok=True)
            write_gradian_run(path, self._run.model_copy(update={"log": log}))
        except Exception as error:  # noqa: BLE001 - a record is not worth a training run
            if not self._warned:
                warnings.warn(
                    f"gradian_run.json is not written: {type(error).__name__}: {error}",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self._warned = True

    def _first(self, args: Any, kwargs: Mapping[str, Any]) -> GradianRun:
        loader = kwargs.get("train_dataloader")
        adapter = _adapter(kwargs.get("model"))
        kind = type(args)
        base = self._base or (adapter or {}).get("base_model_name_or_path")
        collator = getattr(loader, "collate_fn", None)
        settings = {**_collating(collator), **self._settings}
        return GradianRun(
            tool=_tool(kind),
            versions=_versions(),
            arguments_class=f"{kind.__module__}.{kind.__qualname__}",
            arguments=_public(args.to_dict()),
            settings=_plain(settings),
            base_model=base,
            adapter=adapter,
            chat_template=_template(kwargs.get("processing_class")),
            train_data=_data(getattr(loader, "dataset", None)),
            eval_data=_data(getattr(kwargs.get("eval_dataloader"), "dataset", None)),
            sampler_seed=args.data_seed if args.data_seed is not None else args.seed,
            world_size=args.world_size,
            first_rows=_rows(loader),
        )


def _tool(kind: type) -> str:
    for known in kind.__mro__:
        root = known.__module__.split(".")[0].lower()
        if root in {"axolotl", "llamafactory", "trl", "unsloth"}:
            return root
    return "transformers"


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _public(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in _plain(dict(arguments)).items()
        if not any(part in name for part in _PRIVATE)
    }


def _plain(value: Any) -> Any:
    """Make JSON of anything; sets in order, so that the same run gives the same record."""

    def other(item: Any) -> Any:
        return sorted(map(str, item)) if isinstance(item, set | frozenset) else str(item)

    return json.loads(json.dumps(value, default=other))


def _adapter(model: Any) -> dict[str, Any] | None:
    configs = getattr(model, "peft_config", None)
    if not configs:
        return None
    active = getattr(model, "active_adapter", None)
    config = configs.get(active) or next(iter(configs.values()))
    found: dict[str, Any] = _plain(config.to_dict())
    return {
        name: value.rpartition(".")[2] if name in {"peft_type", "task_type"} else value
        for name, value in found.items()
    }


def _template(processing: Any) -> str | None:
    template = getattr(processing, "chat_template", None)
    return template if isinstance(template, str) else None


def _data(data: Any) -> DataRecord | None:
    if data is None:
        return None
    fingerprint = getattr(data, "fingerprint", None) or getattr(data, "_fingerprint", None)
    return DataRecord(
        rows=len(data) if hasattr(data, "__len__") else None,
        columns=tuple(getattr(data, "column_names", None) or ()),
        fingerprint=fingerprint if isinstance(fingerprint, str) else None,
    )


def _collating(collator: Any) -> dict[str, Any]:
    # a Trainer may wrap it to drop columns
    inner = getattr(collator, "data_collator", collator)
    if inner is None:
        return {}
    name = getattr(inner, "__name__", None) or type(inner).__name__
    found: dict[str, Any] = {"collator": name}
    if isinstance(only := getattr(inner, "completion_only_loss", None), bool):
        found["completion_only_loss"] = only
    return found


def _rows(loader: Any) -> tuple[CollatedRow, ...]:
    """Collate the first rows once more, one by one, so that none is padded."""
    data: Any = getattr(loader, "dataset", None)
    collate = getattr(loader, "collate_fn", None)
    if collate is None or not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
        return ()
    taken = []
    for place in range(min(_ROWS, len(data))):
        batch = collate([data[place]])
        if "input_ids" not in batch or "labels" not in batch:
            return ()
        taken.append(
            CollatedRow(
                input_ids=tuple(batch["input_ids"][0].tolist()),
                labels=tuple(batch["labels"][0].tolist()),
            )
        )
    return tuple(taken)
