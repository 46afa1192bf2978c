"""Run scenarios and keep what was measured of each as plain values."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments.fidelity.cases import PLANTED
from experiments.fidelity.grid import VOTERS, rankings
from experiments.fidelity.metrics import Quality, overlap
from experiments.fidelity.runs import Run, fine_tuned
from experiments.fidelity.scenarios import SCENARIOS
from experiments.fidelity.scores import score_matrices
from gradian_core.evaluation.gate import REGRESSED

__all__ = ["Record", "collect"]

PERMUTATIONS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is known of one run.

    Parameters
    ----------
    scenario, seed, kind, split
        Which run.
    rows
        Rows by kind.
    base, tuned, verdict, lost
        The capability, what the gate says, and the number of items that got worse.
    quality
        By ranking, where something was planted and the gate passed.
    control
        By ranking: mean AUC with permuted labels.
    overlap
        The consensus, where the gate passed.
    """

    scenario: str
    seed: int
    kind: str
    split: str
    rows: dict[str, int]
    base: float
    tuned: float
    verdict: str
    lost: int
    quality: dict[str, Quality] = field(default_factory=dict)
    control: dict[str, float] = field(default_factory=dict)
    overlap: float | None = None

    @property
    def regressed(self) -> bool:
        """Whether the gate passed: there is something to attribute."""
        return self.verdict == REGRESSED

    def values(self) -> dict[str, Any]:
        """Return it for the record; a quality is the list of its fields."""
        quality = {
            name: [round(value, 3) for value in asdict(found).values()]
            for name, found in self.quality.items()
        }
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {
            **plain,
            "quality": quality,
            "control": {name: round(value, 3) for name, value in self.control.items()},
        }


def collect(
    names: Sequence[str],
    seeds: Sequence[int],
    cache: Path,
    say: Callable[[str], None] = print,
) -> list[Record]:
    """Fine-tune, measure and score; everything that was done before comes from the cache."""
    records = []
    total = len(names) * len(seeds)
    for seed in seeds:
        for name in names:
            record, _ = one(name, seed, cache)
            records.append(record)
            told = "" if record.overlap is None else f", overlap {record.overlap:.2f}"
            say(
                f"[{len(records)}/{total}] {name} {seed}: {record.base:.2f} → {record.tuned:.2f}, "
                f"{record.verdict}{told}"
            )
    return records


def one(name: str, seed: int, cache: Path) -> tuple[Record, Run]:
    """Fine-tune, measure and score one run. A run whose gate does not pass is not scored."""
    scenario = SCENARIOS[name]
    case = scenario.case(seed)
    run = fine_tuned(case, cache)
    measured = run.measured()
    facts: dict[str, Any] = {
        "scenario": name,
        "seed": seed,
        "kind": scenario.kind,
        "split": scenario.split,
        "rows": {kind: case.kinds.count(kind) for kind in sorted(set(case.kinds))},
        "base": measured.base,
        "tuned": measured.tuned,
        "verdict": measured.verdict,
        "lost": len(measured.flipped),
    }
    if measured.verdict != REGRESSED:
        return Record(**facts), run
    harms = rankings(score_matrices(run))
    facts["overlap"] = overlap([harms[voter] for voter in VOTERS])
    if PLANTED in case.kinds:
        facts["quality"] = {key: Quality.of(harm, case.kinds) for key, harm in harms.items()}
        digest = hashlib.sha256(f"{name}/{seed}".encode()).digest()
        rng = np.random.default_rng(list(digest))
        shuffled = [rng.permutation(np.asarray(case.kinds)) for _ in range(PERMUTATIONS)]
        facts["control"] = {
            key: float(np.mean([Quality.of(harms[key], kinds.tolist()).auc for kinds in shuffled]))
            for key in VOTERS
        }
    return Record(**facts), run
