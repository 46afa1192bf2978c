"""Fine-tune and measure, each once: a run lies under the hash of everything that made it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.fidelity.cases import Case
from gradian_core.config.models import Config
from gradian_core.demo import MODEL_FOLDER
from gradian_core.evaluation.result import CapabilityResult
from gradian_core.flows.session import Session
from gradian_core.index.address import library_versions
from gradian_core.progress import NoProgress

__all__ = ["Run", "fine_tuned"]

CAPABILITY = "capability"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A fine-tune on disk.

    Parameters
    ----------
    case
        What it was made from.
    folder
        ``train.jsonl``, ``eval.jsonl`` and ``run/``.
    """

    case: Case
    folder: Path

    def config(self, **sections: Any) -> Config:
        """Return the configuration that a user would write for it, on the CPU."""
        evaluation = {"metric": self.case.metric, **sections.pop("evaluation", {})}
        return Config.model_validate(
            {
                "base_model": str(MODEL_FOLDER),
                "adapter_path": str(self.folder / "run/adapter"),
                "dataset": str(self.folder / "train.jsonl"),
                "eval_dataset": str(self.folder / "eval.jsonl"),
                "run_dir": str(self.folder / "run"),
                "cache_dir": str(self.folder / ".gradian"),
                "device": "cpu",
                **sections,
                "evaluation": evaluation,
            }
        )

    def session(self, **sections: Any) -> Session:
        """Return a session of Gradian on it."""
        return Session(self.config(**sections), NoProgress())

    def measured(self, session: Session | None = None) -> CapabilityResult:
        """Return what Gradian's evaluation lane measures, gate included."""
        from gradian_core.flows.evaluate import measure_capability

        session = session or self.session()
        name = self.case.metric
        spec = session.registry.find("metric", name).spec
        return measure_capability(
            session, session.registry.create("metric", name), spec, name=CAPABILITY
        )


def fine_tuned(
    case: Case, cache: Path, *, without: Collection[int] = (), seed: int | None = None
) -> Run:
    """Fine-tune a case, or find the run in the cache.

    Parameters
    ----------
    case
        Rows and recipe.
    cache
        Folder of all runs.
    without
        Rows that are left out. The number of optimiser steps stays that of the whole case: with
        fewer steps an arm would differ by more than its rows.
    seed
        Of the training; the case's own if None.
    """
    from gradian_core.demo.finetune import finetune

    training_seed = case.seed if seed is None else seed
    rows = [row for i, row in enumerate(case.train) if i not in set(without)]
    steps = -(-len(case.train) // case.recipe.batch_size) * case.recipe.epochs
    identity = {
        "rows": rows,
        "eval": list(case.eval),
        "metric": case.metric,
        "recipe": asdict(case.recipe),
        "steps": steps,
        "seed": training_seed,
        "model": hashlib.sha256((MODEL_FOLDER / "model.safetensors").read_bytes()).hexdigest(),
        "libraries": library_versions(),
    }
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    folder = cache / "runs" / key
    if not (folder / "done").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, content in (("train", rows), ("eval", case.eval)):
            text = "".join(f"{json.dumps(row)}\n" for row in content)
            (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
        finetune(
            MODEL_FOLDER,
            rows,
            folder / "run",
            seed=training_seed,
            max_steps=steps,
            save_checkpoints=not without,
            **case.recipe.arguments(),
        )
        (folder / "done").touch()
    return Run(case=case, folder=folder)
