"""The main job on an embedded model: break a fine-tune, find the cause, prove it by retraining."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradian_core.config.load import load_config
from gradian_core.config.models import Config
from gradian_core.demo import MODEL_FOLDER
from gradian_core.demo.dataset import DemoData, demo_rows
from gradian_core.demo.finetune import finetune
from gradian_core.errors import UsageError
from gradian_core.evaluation.result import CapabilityResult
from gradian_core.files import write_atomic
from gradian_core.flows.attribute import attribute
from gradian_core.flows.evaluate import measure_capability
from gradian_core.flows.session import Session, counted
from gradian_core.flows.tools import resolve_tools
from gradian_core.progress import NoProgress, Progress
from gradian_core.report.attribution import ClusterReport
from gradian_core.report.model import Report

__all__ = ["CAPABILITY", "DemoOutcome", "run_demo"]

CAPABILITY = "capitals"

_CONFIG = """\
# An ordinary configuration: gradian attribute --config {folder}/gradian.yaml
base_model: base
adapter: run/adapter
dataset: train.jsonl
eval_dataset: eval.jsonl
seed: {seed}
evaluation:
  metric: exact_match
clustering:
  min_cluster_size: 8
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    """What the demo showed.

    Parameters
    ----------
    report
        The diagnosis of the broken fine-tune.
    accused
        The cluster it puts first; None if no cluster is net harmful.
    n_planted
        Wrong rows that were planted.
    n_accused_planted
        How many of them the accused cluster holds.
    without_accused
        The capability after retraining without the accused cluster.
    without_random
        The control: retrained without as many other rows.
    """

    report: Report
    accused: ClusterReport | None
    n_planted: int
    n_accused_planted: int
    without_accused: CapabilityResult | None
    without_random: CapabilityResult | None


def run_demo(
    out: Path, *, seed: int = 0, keep: bool = False, progress: Progress | None = None
) -> DemoOutcome:
    """Plant wrong capitals in a data set, fine-tune on it, diagnose, retrain without the accused.

    Parameters
    ----------
    out
        Folder for an ordinary run: ``base/``, ``run/``, ``train.jsonl``, ``eval.jsonl``,
        ``gradian.yaml``. It must be empty, or come from an earlier demo.
    seed
        Seeds data, fine-tunes and analysis.
    keep
        Keep the gradient index and the retrained adapters, too.
    progress
        Where to report; silent if None.

    Raises
    ------
    UsageError
        If the folder holds something else, or the seed is out of range; nothing is written then.
    """
    show = progress or NoProgress()
    load_config(None, {"seed": seed})
    data = demo_rows(seed)
    _write_inputs(out, data, seed)
    train = _trainer(out / "base", seed, show)
    with _one_thread():
        train(data.train, out / "run", "Fine-tuning on the data with planted rows")
        config = load_config(out / "gradian.yaml", {"cache_dir": out / ".gradian", "device": "cpu"})
        report = attribute(config, capability=CAPABILITY, progress=show)
        outcome = _prove(out, data, config, report, train, seed, show)
    if not keep:
        shutil.rmtree(out / ".gradian")
        for name in _ARMS:
            shutil.rmtree(out / name, ignore_errors=True)
    return outcome


_ARMS = ("without-accused", "without-random")

Train = Callable[[Iterable[Mapping[str, Any]], Path, str], Path]


def _prove(
    out: Path,
    data: DemoData,
    config: Config,
    report: Report,
    train: Train,
    seed: int,
    progress: Progress,
) -> DemoOutcome:
    accused = next((c for c in report.clusters if c.stands_out), None)
    if accused is None or report.scores is None:
        return DemoOutcome(
            report=report,
            accused=None,
            n_planted=len(data.planted),
            n_accused_planted=0,
            without_accused=None,
            without_random=None,
        )
    rows = {i for i, name in enumerate(report.scores.cluster) if name == accused.cluster}
    others = [i for i in range(len(data.train)) if i not in rows]
    # dropping any rows changes a fine-tune: only what goes beyond this is the cluster's doing
    control = random.Random(seed).sample(others, min(len(rows), len(others) // 2))  # noqa: S311

    def retrained(arm: str, dropped: Collection[int], what: str) -> CapabilityResult:
        kept = [row for i, row in enumerate(data.train) if i not in dropped]
        run = train(kept, out / arm, f"Retraining without {what}")
        session = Session(
            config.model_copy(update={"adapter_path": str(run / "adapter")}), progress
        )
        tools = resolve_tools(session)
        return measure_capability(session, tools.metric, tools.metric_spec, name=CAPABILITY)

    return DemoOutcome(
        report=report,
        accused=accused,
        n_planted=len(data.planted),
        n_accused_planted=len(rows.intersection(data.planted)),
        without_accused=retrained(_ARMS[0], rows, "the accused cluster"),
        without_random=retrained(_ARMS[1], set(control), f"{len(control)} other rows"),
    )


def _trainer(base: Path, seed: int, progress: Progress) -> Train:
    def train(rows: Iterable[Mapping[str, Any]], out: Path, description: str) -> Path:
        with counted(progress, description) as report:
            return finetune(
                base,
                list(rows),
                out,
                seed=seed,
                progress=lambda step, steps, _loss: report(step, steps),
            )

    return train


def _write_inputs(out: Path, data: DemoData, seed: int) -> None:
    known = {"base", "run", "report", ".gradian", "train.jsonl", "eval.jsonl", "gradian.yaml"}
    strange = {path.name for path in out.iterdir()} - known - set(_ARMS) if out.exists() else set()
    if strange:
        raise UsageError(
            f"{out} holds something else than a demo ({min(strange)}).",
            hint="Give another folder with --out.",
        )
    out.mkdir(parents=True, exist_ok=True)
    # a fine-tune of another seed must not be mixed with this one
    for name in ("run", ".gradian", *_ARMS):
        shutil.rmtree(out / name, ignore_errors=True)
    shutil.copytree(MODEL_FOLDER, out / "base", dirs_exist_ok=True)
    for name, rows in (("train.jsonl", data.train), ("eval.jsonl", data.eval)):
        write_atomic(out / name, "".join(f"{json.dumps(row)}\n" for row in rows))
    write_atomic(out / "gradian.yaml", _CONFIG.format(folder=out.name, seed=seed))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread: a model this small is slower on several."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
