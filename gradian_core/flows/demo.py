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
from gradian_core.data.files import dataset_from_rows
from gradian_core.demo import MODEL_FOLDER
from gradian_core.demo.finetune import finetune
from gradian_core.demo.scenario import Scenario
from gradian_core.demo.scenarios import make_scenario
from gradian_core.errors import UsageError
from gradian_core.evaluation.gate import REGRESSED
from gradian_core.evaluation.result import CapabilityResult
from gradian_core.files import write_atomic
from gradian_core.flows.attribute import attribute
from gradian_core.flows.evaluate import measure_capability
from gradian_core.flows.session import Session, counted
from gradian_core.flows.tools import resolve_tools
from gradian_core.progress import NoProgress, Progress
from gradian_core.report.attribution import ClusterReport
from gradian_core.report.model import Report

__all__ = ["DemoOutcome", "run_demo"]

_CONFIG = """\
# An ordinary configuration: gradian attribute --config {folder}/gradian.yaml
base_model: base
adapter: run/adapter
run_dir: run
dataset: train.jsonl
eval_dataset: eval.jsonl
seed: {seed}
# half the disk, and nothing that shows in the ranking
grads:
  storage_dtype: float16
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
    scenario
        What was done, and what is expected.
    report
        The diagnosis of the fine-tune.
    accused
        The cluster it accuses; None if nothing regressed or no cluster stands out.
    n_accused_planted
        How many of them the accused cluster holds.
    without_accused
        The capability after retraining without the accused cluster.
    without_random
        The control: retrained without as many other rows.
    sane_settings
        The capability after retraining on all rows with the demo's usual settings; None where
        these were used.
    """

    scenario: Scenario

    report: Report
    accused: ClusterReport | None
    n_accused_planted: int = 0
    without_accused: CapabilityResult | None = None
    without_random: CapabilityResult | None = None
    sane_settings: CapabilityResult | None = None


def run_demo(
    out: Path,
    *,
    scenario: str = "wrong-facts",
    seed: int = 0,
    keep: bool = False,
    progress: Progress | None = None,
) -> DemoOutcome:
    """Fine-tune on the scenario's data, diagnose, and retrain without what is accused.

    Parameters
    ----------
    out
        Folder for an ordinary run: ``base/``, ``run/``, ``train.jsonl``, ``eval.jsonl``,
        ``gradian.yaml``, and ``planted.json`` with the ids of the wrong rows, if there are any.
        It must be empty, or come from an earlier demo.
    scenario
        A name in :data:`gradian_core.demo.scenarios.SCENARIOS`.
    seed
        Seeds data, fine-tunes and analysis.
    keep
        Keep the gradient index and the retrained adapters, too.
    progress
        Where to report; silent if None.

    Raises
    ------
    UsageError
        If there is no such scenario, the folder holds something else, or the seed is out of
        range; nothing is written then.
    """
    show = progress or NoProgress()
    load_config(None, {"seed": seed})
    story = make_scenario(scenario, seed)
    _write_inputs(out, story, seed)
    train = _trainer(out / "base", seed, show)
    with _one_thread():
        train(story.train, out / "run", "Fine-tuning", story.settings)
        config = load_config(out / "gradian.yaml", {"cache_dir": out / ".gradian", "device": "cpu"})
        report = attribute(config, capability=story.capability, progress=show)
        outcome = _prove(out, story, config, report, train, seed, show)
    if not keep:
        shutil.rmtree(out / ".gradian")
        for name in _ARMS:
            shutil.rmtree(out / name, ignore_errors=True)
    return outcome


_ARMS = ("without-accused", "without-random", "sane-settings")

Train = Callable[[Iterable[Mapping[str, Any]], Path, str, Mapping[str, Any]], Path]


def _prove(
    out: Path,
    story: Scenario,
    config: Config,
    report: Report,
    train: Train,
    seed: int,
    progress: Progress,
) -> DemoOutcome:
    regressed = report.capability is not None and report.capability.verdict == REGRESSED
    if not regressed or report.scores is None:
        return DemoOutcome(scenario=story, report=report, accused=None)

    def retrained(
        arm: str, dropped: Collection[int], what: str, settings: Mapping[str, Any]
    ) -> CapabilityResult:
        kept = [row for i, row in enumerate(story.train) if i not in dropped]
        run = train(kept, out / arm, f"Retraining {what}", settings)
        # neither its log nor its settings are those of the run that was diagnosed
        changed = {"adapter_path": str(run / "adapter"), "run_dir": str(run)}
        session = Session(config.model_copy(update=changed), progress)
        tools = resolve_tools(session)
        return measure_capability(session, tools.metric, tools.metric_spec, name=story.capability)

    sane = (
        retrained(_ARMS[2], (), "on all rows with usual settings", {}) if story.settings else None
    )
    accused = next((c for c in report.clusters if c.stands_out), None)
    if accused is None:
        return DemoOutcome(scenario=story, report=report, accused=None, sane_settings=sane)
    rows = {i for i, name in enumerate(report.scores.cluster) if name == accused.cluster}
    others = [i for i in range(len(story.train)) if i not in rows]
    # dropping any rows changes a fine-tune: only what goes beyond this is the cluster's doing
    control = random.Random(seed).sample(others, min(len(rows), len(others) // 2))  # noqa: S311
    return DemoOutcome(
        scenario=story,
        report=report,
        accused=accused,
        n_accused_planted=len(rows.intersection(story.planted)),
        without_accused=retrained(_ARMS[0], rows, "without the accused cluster", story.settings),
        without_random=retrained(
            _ARMS[1], set(control), f"without {len(control)} other rows", story.settings
        ),
        sane_settings=sane,
    )


def _trainer(base: Path, seed: int, progress: Progress) -> Train:
    def train(
        rows: Iterable[Mapping[str, Any]], out: Path, description: str, settings: Mapping[str, Any]
    ) -> Path:
        with counted(progress, description) as report:
            return finetune(
                base,
                list(rows),
                out,
                seed=seed,
                progress=lambda step, steps, _loss: report(step, steps),
                **settings,
            )

    return train


_INPUTS = ("train.jsonl", "eval.jsonl", "gradian.yaml", "planted.json")


def _write_inputs(out: Path, story: Scenario, seed: int) -> None:
    known = {"base", "run", "report", ".gradian", *_INPUTS}
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
    (out / "planted.json").unlink(missing_ok=True)
    for name, rows in (("train.jsonl", story.train), ("eval.jsonl", story.eval)):
        write_atomic(out / name, "".join(f"{json.dumps(row)}\n" for row in rows))
    if story.planted:
        examples = dataset_from_rows(story.train)
        write_atomic(
            out / "planted.json",
            json.dumps([examples[i].id for i in story.planted], indent=1) + "\n",
        )
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
