"""Per-item scores of every engine on a run, computed once and kept."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.fidelity.baselines import baseline_scores
from experiments.fidelity.grid import BASELINES, CELLS, Cell
from experiments.fidelity.runs import Run
from gradian_core.__about__ import __version__
from gradian_core.attribution.score import score_point, score_task
from gradian_core.flows.index import encode_training_data
from gradian_core.flows.points import Points
from gradian_core.flows.queries import QueryPlanner
from gradian_core.plugins.options import engine_options
from gradian_core.protocols import BlockEngine

__all__ = ["open_points", "score_cell", "score_matrices"]


def open_points(run: Run, **sections: Any) -> Points:
    """Return what engines score: the rows of a run, and its items that got worse.

    Parameters
    ----------
    run
        The run.
    sections
        Settings in place of the run's own, such as ``cache_dir``.
    """
    session = run.session(evaluation={"query_signal": "target"}, **sections)
    spec = session.registry.find("metric", run.case.metric).spec
    encoded = encode_training_data(session)
    return Points(session, encoded, QueryPlanner(session, run.measured(session), spec, encoded))


def score_cell(points: Points, cell: Cell) -> NDArray[np.float64]:
    """Return the ``(q, n)`` scores of one pass, in the order of the file."""
    session = points.session
    registry = session.registry
    model = registry.config_model("engine", cell.engine)
    options = {**engine_options(session.config, cell.engine, model), **cell.options}
    engine = registry.create("engine", cell.engine, options)
    owner = registry.engines[cell.engine].owner
    if isinstance(engine, BlockEngine):
        return score_point(points.point(cell.signal), engine, owner=owner).matrix
    task = points.task(cell.engine, owner)
    return score_task(task, engine, points.order, len(points.encoded.tokens), owner=owner).matrix


def score_matrices(run: Run) -> dict[str, NDArray[np.float32]]:
    """Return the scores of all cells and baselines, from the run's folder where they are there.

    The gradients are deleted when they are no longer needed: a run's are half a gigabyte.
    """
    key = hashlib.sha256(
        json.dumps([__version__, [asdict(cell) for cell in CELLS], BASELINES]).encode()
    ).hexdigest()[:12]
    path = run.folder / f"scores-{key}.npz"
    if not path.is_file():
        points = open_points(run)
        found = {cell.name: score_cell(points, cell) for cell in CELLS}
        task = points.task("baselines", "experiments.fidelity")
        n = len(points.encoded.tokens)
        for name, scores in baseline_scores(task, points.session.model).items():
            found[name] = np.zeros((len(scores), n))
            found[name][:, points.order] = scores
        half = path.with_name(f"half-{path.name}")
        small: dict[str, Any] = {k: v.astype(np.float32) for k, v in found.items()}
        np.savez_compressed(half, **small)
        half.replace(path)
        for folder in ("index", "queries"):
            shutil.rmtree(_cache(run) / folder, ignore_errors=True)
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}


def _cache(run: Run) -> Path:
    return Path(run.config().cache_dir)
