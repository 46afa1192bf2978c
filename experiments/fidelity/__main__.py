"""Run the benchmark and write its record.

Usage, from the root of a checkout with the ``attribution`` extra::

    python -m experiments.fidelity --tier pr
    python -m experiments.fidelity --tier nightly --truth 0 --cost

Everything that takes time lies in ``build/fidelity`` under the hash of what made it: what was
stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.fidelity.collect import Record, collect
from experiments.fidelity.cost import costs
from experiments.fidelity.scenarios import SCENARIOS, scenario_names
from experiments.fidelity.tables import consensus_summary, page, summary
from experiments.fidelity.truth import truth
from gradian_core.files import write_atomic
from gradian_core.versions import library_versions

ROOT = Path(__file__).resolve().parents[2]

TIERS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "pr": (("wrong-terse", "truncated-json", "lr-x10", "benign"), (0,)),
    "tuning": (tuple(scenario_names(split="tuning")), (0, 1)),
    "weekly": (tuple(SCENARIOS), (0, 1)),
    "nightly": (tuple(SCENARIOS), (0, 1, 2, 3)),
}
"""Scenarios and seeds by tier; minutes, a quarter of an hour, an hour, two hours on one core."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.fidelity", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--tier", choices=TIERS, default="pr")
    parser.add_argument("--scenario", choices=SCENARIOS, action="append", help="only these")
    parser.add_argument("--seeds", type=int, nargs="+", help="in place of the tier's")
    parser.add_argument(
        "--truth",
        type=int,
        nargs="+",
        metavar="SEED",
        help="retrain the runs of these seeds without the planted rows",
    )
    parser.add_argument("--cost", action="store_true", help="measure what engines cost")
    parser.add_argument("--cache", type=Path, default=ROOT / "build/fidelity")
    parser.add_argument("--results", type=Path, help="folder for fidelity.json and .md")
    options = parser.parse_args(arguments)

    import torch

    # a model this small is slower on several threads
    torch.set_num_threads(1)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    names, seeds = TIERS[options.tier]
    names, seeds = options.scenario or names, options.seeds or seeds
    records = collect(names, seeds, options.cache, say=lambda line: print(line, flush=True))
    shown = [f"--tier {options.tier}"]
    shown += [f"--scenario {name}" for name in options.scenario or ()]
    shown += [f"--seeds {' '.join(map(str, options.seeds))}"] if options.seeds else []
    shown += [f"--truth {' '.join(map(str, options.truth))}"] if options.truth else []
    shown += ["--cost"] if options.cost else []
    command = " ".join(["python -m experiments.fidelity", *shown])
    more: dict[str, Any] = {}
    if options.cost:
        more["cost"] = costs(options.cache)
    if options.truth:
        more["truth"] = [
            truth(record.scenario, record.seed, options.cache).values()
            for record in records
            if record.kind == "data" and record.regressed and record.seed in options.truth
        ]
    builds = more["cost"]["index builds"] if "cost" in more else None
    text = page(records, command, library_versions(), builds) + _more(more)
    print(text)
    if options.results is not None:
        _write(options.results, records, command, text, more)


def _write(
    folder: Path, records: Sequence[Record], command: str, text: str, more: dict[str, Any]
) -> None:
    record = {
        "command": command,
        "versions": library_versions(),
        "columns": ["auc", "ap", "precision", "auc_topical", "auc_format"],
        **more,
        "consensus": consensus_summary(records),
        "splits": {
            split: _rounded(summary([r for r in records if r.split == split]))
            for split in ("tuning", "frozen")
        },
        "runs": [record.values() for record in records],
    }
    folder.mkdir(parents=True, exist_ok=True)
    # one line a run: thousands of numbers are not to be read by eye
    write_atomic(folder / "fidelity.json", json.dumps(record, separators=(",", ":")) + "\n")
    write_atomic(folder / "fidelity.md", text)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inner) for inner in value]
    return round(value, 3) if isinstance(value, float) else value


def _more(more: dict[str, Any]) -> str:
    lines = []
    if "cost" in more:
        lines += ["", "## Cost", "", "CPU time, with indexes and queries, in index builds:", ""]
        lines += [f"- {name}: {value}" for name, value in more["cost"]["index builds"].items()]
    if "truth" in more:
        lines += ["", "## Truth by retraining", ""]
        lines += [
            "| run | full | without planted | without random | effect | |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for row in more["truth"]:
            arms = [
                " ".join(f"{value:.2f}" for value in row[arm])
                for arm in ("full", "without_planted", "without_random")
            ]
            verdict = "" if row["attributable"] else "not attributable"
            lines.append(
                f"| {row['scenario']} {row['seed']} | {' | '.join(arms)} | {row['effect']:+.2f} "
                f"| {verdict} |"
            )
    return "\n".join(lines) + "\n" if lines else ""


if __name__ == "__main__":
    main()
