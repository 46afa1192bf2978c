"""Training and measuring one arm; what has been done before is found again."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.config.models import TrainSection
from gradian_core.files import write_atomic
from gradian_core.flows.evaluate import measure_capability
from gradian_core.flows.session import Session, counted
from gradian_core.plugins.failure import guard
from gradian_core.progress import NoProgress
from gradian_core.protocols import TrainJob
from gradian_core.retraining.arms import Arm, visits

__all__ = ["ArmRun", "Runner"]

_RESULT = "result.json"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArmRun:
    """One retraining.

    Parameters
    ----------
    base, tuned
        ``(items,)`` scores of the base and of the retrained model.
    found
        Whether it had been done before.
    """

    base: NDArray[np.float64]
    tuned: NDArray[np.float64]
    found: bool


class Runner:
    """Retrains arms of one fine-tune and measures its capability.

    Parameters
    ----------
    session
        The run that is put to the test; its config names data, eval data and metric.
    settings
        Settings of the fine-tune.
    steps
        Optimiser steps of every arm.
    out
        Folder that holds a folder for each retraining.
    keep
        Keep the adapters.
    """

    def __init__(
        self, session: Session, settings: TrainSection, *, steps: int, out: Path, keep: bool
    ) -> None:
        registry = session.registry
        self._session = session
        self._settings = settings
        self._steps = steps
        self._out = out
        self._keep = keep
        self._owner = registry.find("trainer", settings.backend).owner
        self._trainer = registry.create("trainer", settings.backend)
        self._metric = registry.create("metric", session.config.evaluation.metric)
        self._spec = registry.find("metric", session.config.evaluation.metric).spec
        self._rows: Sequence[dict[str, Any]] | None = None

    def run(self, arm: Arm, seed: int) -> ArmRun:
        """Train and measure an arm, or take its scores from an earlier run."""
        folder = self._out / f"{arm.name.replace(' ', '-')}-seed-{seed}"
        key = self._key(arm, seed)
        found = _read(folder / _RESULT, key)
        if found is not None:
            return ArmRun(base=found[0], tuned=found[1], found=True)
        # half an adapter of an interrupted run is worth nothing
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        measured = self._measure(self._train(arm, seed, folder) / "adapter", arm.name)
        write_atomic(folder / _RESULT, json.dumps({"key": key, **measured}) + "\n")
        if not self._keep:
            for path in folder.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
        return ArmRun(
            base=np.array(measured["base"]), tuned=np.array(measured["tuned"]), found=False
        )

    def _train(self, arm: Arm, seed: int, folder: Path) -> Path:
        config, settings = self._session.config, self._settings
        data = self._session.dataset
        if self._rows is None:
            self._rows = [example.as_row() for example in data]
        a_step = settings.per_device_train_batch_size * settings.gradient_accumulation_steps
        with (
            counted(self._session.progress, f"Training {arm.name}, seed {seed}") as report,
            guard(self._owner, f"Trainer {settings.backend}"),
        ):
            return self._trainer.train(
                TrainJob(
                    base_model=config.base_model,
                    rows=self._rows,
                    out=folder,
                    settings=settings.model_copy(
                        update={
                            "learning_rate": settings.learning_rate * arm.rate_factor,
                            "extra": {**settings.extra, "max_steps": self._steps},
                        }
                    ).model_dump(),
                    seed=seed,
                    order=visits(len(data), arm.dropped, self._steps * a_step, seed),
                    device=config.device,
                    dtype=config.dtype,
                    trust_remote_code=config.trust_remote_code,
                    progress=lambda step, steps, _loss: report(step, steps),
                )
            )

    def _measure(self, adapter: Path, name: str) -> dict[str, list[float]]:
        config = self._session.config.model_copy(update={"adapter_path": str(adapter)})
        result = measure_capability(
            Session(config, NoProgress()), self._metric, self._spec, name=name
        )
        return {
            "base": [item.base_score for item in result.items],
            "tuned": [item.tuned_score for item in result.items],
        }

    def _key(self, arm: Arm, seed: int) -> str:
        session, eval_data = self._session, self._session.eval_dataset
        content = {
            "base": session.inputs(dataset=session.dataset.fingerprint).model_dump(
                mode="json", exclude={"spec", "adapter", "seed"}
            ),
            "eval": None if eval_data is None else eval_data.fingerprint,
            "evaluation": session.config.evaluation.model_dump(mode="json"),
            "train": self._settings.model_dump(mode="json", exclude={"output_dir"}),
            "trainer": self._owner,
            "steps": self._steps,
            "dropped": sorted(arm.dropped),
            "rate": arm.rate_factor,
            "seed": seed,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read(path: Path, key: str) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    try:
        found = json.loads(path.read_bytes())
        if found["key"] == key:
            return np.array(found["base"], dtype=float), np.array(found["tuned"], dtype=float)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None
