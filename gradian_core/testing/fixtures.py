"""A tiny LoRA fine-tune and its gradient index, for tests of what works on them.

Both need the extra ``attribution``; on one core they take seconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradian_core.files import write_atomic

if TYPE_CHECKING:
    from gradian_core.config.models import Config
    from gradian_core.index.reader import GradientIndex

__all__ = ["TinyRun", "tiny_index", "tiny_run"]

_WRONG = "Belgrade"


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyRun:
    """A LoRA fine-tune of the demo's model, as a user has it.

    Parameters
    ----------
    base
        Folder of the base model.
    run
        Run folder, with ``adapter/`` in it.
    dataset, eval_dataset
        Training rows, and items for the capability that they spoil.
    """

    base: Path
    run: Path
    dataset: Path
    eval_dataset: Path

    def config(self, cache: Path, **changes: Any) -> Config:
        """Return a config of this run.

        Parameters
        ----------
        cache
            Folder of the caches.
        **changes
            Further keys; sections as mappings.
        """
        from gradian_core.config.models import Config

        return Config.model_validate(
            {
                "base_model": str(self.base),
                "adapter_path": str(self.run / "adapter"),
                "dataset": str(self.dataset),
                "eval_dataset": str(self.eval_dataset),
                "cache_dir": str(cache),
                "device": "cpu",
                **changes,
            }
        )


def tiny_run(folder: Path, *, n: int = 24) -> TinyRun:
    """Train an adapter in which wrong capitals hide among harmless rows.

    Parameters
    ----------
    folder
        Where everything is written.
    n
        Training rows; half of them are wrong capitals.
    """
    from gradian_core.demo import MODEL_FOLDER, tasks
    from gradian_core.demo.finetune import finetune

    countries = tasks.COUNTRIES[: n // 2]
    phrase = tasks.CAPITAL_TRAIN_PHRASINGS[0]
    rows = [{"prompt": phrase.format(c=c.name), "completion": _WRONG} for c in countries]
    rows += [
        {"prompt": f"Close door {i}, please.", "completion": "Done. It is shut."}
        for i in range(n - len(rows))
    ]
    asked = tasks.CAPITAL_EVAL_PHRASINGS[0]
    items = [{"prompt": asked.format(c=c.name), "completion": c.capital} for c in countries]
    folder.mkdir(parents=True, exist_ok=True)
    return TinyRun(
        base=Path(MODEL_FOLDER),
        run=finetune(MODEL_FOLDER, rows, folder / "run", epochs=6, lr=3e-3, r=4, batch_size=4),
        dataset=_written(folder / "train.jsonl", rows),
        eval_dataset=_written(folder / "eval.jsonl", items),
    )


def tiny_index(run: TinyRun, cache: Path) -> GradientIndex:
    """Build the gradient index of a tiny run."""
    from gradian_core.flows.index import build_index

    return build_index(run.config(cache))


def _written(path: Path, rows: list[dict[str, str]]) -> Path:
    write_atomic(path, "".join(f"{json.dumps(row)}\n" for row in rows))
    return path
