"""Does the demo keep its promises with other seeds? Run every scenario, and record what came out.

Usage, from the root of a checkout (about a minute a run on one core)::

    python experiments/demo_seeds.py

The record is ``docs/results/demo-seeds.json`` and ``.md``; what was done before is in ``--out``.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradian_core.files import write_atomic
from gradian_core.flows.demo import DemoOutcome, run_demo
from gradian_core.versions import library_versions

ROOT = Path(__file__).resolve().parents[1]
SEEDS = {
    "wrong-facts": range(8),
    "clean": range(3),
    "refusals": range(1),
    "truncated-json": range(1),
    "twelve-epochs": range(1),
}
_AUDIT = ("config.", "data.", "dynamics.")
_QUIET = {"low", "info"}


def outcome(found: DemoOutcome) -> dict[str, Any]:
    """Return what one run showed."""
    report, accused = found.report, found.accused
    measured = report.capability
    assert measured is not None
    consensus, verdict = report.consensus, report.verdict
    return {
        "base": measured.base,
        "tuned": measured.tuned,
        "interval": [measured.ci_low, measured.ci_high],
        "gate": measured.verdict,
        "verdict": None if verdict is None else verdict.kind,
        "overlap": None if consensus is None else consensus.overlap,
        "planted": len(found.scenario.planted),
        "accused": 0 if accused is None else accused.n,
        "accused planted": found.n_accused_planted,
        "share": None if accused is None else accused.share_of_negative,
        "without accused": _tuned(found.without_accused),
        "without random": _tuned(found.without_random),
        "sane settings": _tuned(found.sane_settings),
        "audit above low": sorted(
            {
                f.id
                for f in report.findings
                if f.id.startswith(_AUDIT) and f.severity.value not in _QUIET
            }
        ),
    }


def _tuned(result: Any) -> float | None:
    return None if result is None else float(result.tuned)


def page(runs: list[tuple[str, int, Mapping[str, Any]]], versions: Mapping[str, str]) -> str:
    """Return the record as a page."""
    head = (
        "scenario", "seed", "accuracy", "gate", "verdict", "overlap", "accused (planted)",
        "share of the harm", "without accused", "without random", "usual settings",
        "audit above low",
    )  # fmt: skip
    lines = [
        "# The demo with other seeds",
        "",
        f"`python experiments/demo_seeds.py` · {', '.join(map(' '.join, versions.items()))}",
        "",
        "The columns after the harm are the accuracy after retraining.",
        "",
        "| " + " | ".join(head) + " |",
        "| " + " | ".join("---" for _ in head) + " |",
    ]
    for name, seed, r in runs:
        accused = f"{r['accused']} ({r['accused planted']} of {r['planted']})"
        cells = (
            name,
            str(seed),
            f"{r['base']:.2f} → {r['tuned']:.2f}",
            r["gate"],
            str(r["verdict"]),
            _number(r["overlap"]),
            accused if r["accused"] else "none",
            _number(r["share"]),
            _number(r["without accused"]),
            _number(r["without random"]),
            _number(r["sane settings"]),
            ", ".join(r["audit above low"]) or "none",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def main() -> None:
    """Run what is missing and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build/demo-seeds")
    parser.add_argument("--results", type=Path, default=ROOT / "docs/results")
    options = parser.parse_args()
    versions = library_versions()
    runs = []
    for name, seeds in SEEDS.items():
        for seed in seeds:
            folder = options.out / f"{name}-{seed}"
            done = folder.with_suffix(".json")
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                found = outcome(run_demo(folder, scenario=name, seed=seed))
                write_atomic(done, json.dumps(found) + "\n")
                shutil.rmtree(folder)
            runs.append((name, seed, json.loads(done.read_bytes())))
            print(name, seed, runs[-1][2], flush=True)
            options.results.mkdir(parents=True, exist_ok=True)
            body = {"versions": dict(versions), "runs": [[n, s, r] for n, s, r in runs]}
            write_atomic(
                options.results / "demo-seeds.json", json.dumps(body, indent=1, sort_keys=True)
            )
            write_atomic(options.results / "demo-seeds.md", page(runs, versions))


if __name__ == "__main__":
    main()
