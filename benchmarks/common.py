"""What the benchmarks share: fair clocks, pinned threads, and a record that says what ran."""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gradian_core.versions import library_versions

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

Job = Callable[[], object]
"""Something to be timed."""


def pin_threads() -> None:
    """Start again with one thread everywhere: BLAS reads its number when it is loaded.

    With two torch threads on a busy two-core machine a small model runs ten times slower, and
    CPU time then measures waiting.
    """
    if all(os.environ.get(name) == "1" for name in _THREAD_VARIABLES):
        return
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"), HF_HUB_OFFLINE="1")
    os.execv(sys.executable, [sys.executable, *sys.argv])


def interleaved(jobs: Mapping[str, Job], repeats: int) -> dict[str, list[float]]:
    """Measure CPU seconds (user and system) of each job, all jobs in every round.

    A change of the machine's speed then hits all of them, and ratios within a round stay fair.
    A first round warms up and is thrown away.
    """
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for round_ in range(repeats + 1):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            if round_:
                seconds[name].append(time.process_time() - start)
    return seconds


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return minimum and median."""
    return {"min": round(min(values), 4), "median": round(statistics.median(values), 4)}


def ratios(values: Sequence[float], plain: Sequence[float]) -> dict[str, float]:
    """Return minimum over minimum, and the median of the ratios within a round."""
    within = [mine / theirs for mine, theirs in zip(values, plain, strict=True)]
    return {
        "min": round(min(values) / min(plain), 3),
        "median": round(statistics.median(within), 3),
    }


def peak_memory_mb() -> int:
    """Return the largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // (1 << 20 if sys.platform == "darwin" else 1 << 10)


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def write(name: str, title: str, command: str, text: str, result: Mapping[str, Any]) -> None:
    """Write ``docs/results/<name>.json`` and ``.md``."""
    record = {
        "command": command,
        "versions": library_versions(),
        "machine": f"{platform.machine()}, one thread, {os.cpu_count()} cores",
        **result,
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    versions = ", ".join(f"{key} {value}" for key, value in record["versions"].items())
    page = f"# {title}\n\n`{command}` · {record['machine']} · {versions}\n\n{text}\n"
    (RESULTS / f"{name}.md").write_text(page, encoding="utf-8")
    print(page)
