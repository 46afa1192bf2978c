"""What a choice of engine costs, in index builds, measured side by side."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from experiments.fidelity.bars import COST_DEFAULT, COST_FAST
from experiments.fidelity.grid import ALPHAS, Cell
from experiments.fidelity.runs import fine_tuned
from experiments.fidelity.scenarios import SCENARIOS
from experiments.fidelity.scores import open_points, score_cell

__all__ = ["costs"]

ROUNDS = 3

CHOICES = {
    COST_DEFAULT: Cell(
        name="default",
        engine="path",
        signal="target",
        options={"form": "acos", "alphas": list(ALPHAS), "signal": "target"},
    ),
    COST_FAST: Cell(
        name="fast",
        engine="path",
        signal="divergence",
        options={"form": "acos", "alphas": [0.5], "signal": "divergence"},
    ),
    "datainf": Cell(name="datainf", engine="datainf", signal="target"),
    "graddot": Cell(name="graddot", engine="graddot", signal="target"),
}


def costs(cache: Path, scenario: str = "wrong-terse", seed: int = 0) -> dict[str, Any]:
    """Return CPU seconds of one index build, and of each choice with its indexes and queries.

    Models are loaded and answers measured before the clock starts. All are measured in every
    round, so that a change of the machine's speed hits all of them.
    """
    run = fine_tuned(SCENARIOS[scenario].case(seed), cache)
    seconds: dict[str, list[float]] = {}
    for round_ in range(ROUNDS + 1):
        for name, cell in {"index build": None, **CHOICES}.items():
            with TemporaryDirectory() as folder:
                points = open_points(run, cache_dir=folder)
                _ = points.session.model, points.planner.plan(cell.signal if cell else "target")
                start = time.process_time()
                _index(points) if cell is None else score_cell(points, cell)
                if round_:
                    seconds.setdefault(name, []).append(time.process_time() - start)
    builds = seconds["index build"]
    return {
        "run": f"{scenario} {seed}",
        "seconds": {name: round(statistics.median(v), 2) for name, v in seconds.items()},
        "index builds": {
            name: round(statistics.median(a / b for a, b in zip(v, builds, strict=True)), 2)
            for name, v in seconds.items()
        },
    }


def _index(points: Any) -> object:
    from gradian_core.flows.index import training_index

    return training_index(points.session, points.encoded, force=False)
