"""Tables of what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.fidelity.bars import bars
from experiments.fidelity.collect import Record
from experiments.fidelity.grid import BASELINES, RANK_SUM, RANK_SUM_2, TEXT, VOTERS
from experiments.fidelity.metrics import bootstrap_interval

__all__ = ["SHOWN", "consensus_summary", "page", "summary"]

DEFAULT = "path-acos/target relu"
FAST = "acos@0.5/divergence relu"
ORIGINAL = "datainf/contrastive mean"
"""The choices that ``docs/decisions/0001-default-engine.md`` is about."""
SHOWN = (
    DEFAULT,
    "path-acos/target max",
    "path-acos/target top3",
    "path-acos/target mean",
    "path-cosine/target relu",
    "path-adam/target relu",
    FAST,
    "acos@0.5/divergence top3",
    "adam@0.5/divergence relu",
    "adam@0.5/divergence top3",
    "cosine@0.5/divergence relu",
    "acos@0.5/target relu",
    "acos@0.5/target max",
    "cosine@0.5/target relu",
    RANK_SUM,
    RANK_SUM_2,
    "acos@1/target relu",
    "cosine@1/target relu",
    "cosine@1/target max",
    "cosine@1/target mean",
    "graddot/target relu",
    "graddot/target max",
    "graddot/target mean",
    "graddot/contrastive mean",
    "datainf/target relu",
    "datainf/target max",
    "datainf/target mean",
    "datainf/contrastive max",
    ORIGINAL,
    *BASELINES,
)
"""The rows of the tables; all others are in the JSON."""
CONCENTRATED, DIFFUSE = 0.47, 0.30
ABOVE = "power above all of config and benign"


def summary(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Return means over scenarios of every ranking, best average precision first.

    A scenario counts once, with the mean of its seeds.
    """
    scored = [record for record in records if record.quality and record.kind == "data"]
    if not scored:
        return {}
    names = list(scored[0].quality)

    def by_scenario(name: str, field: str) -> dict[str, float]:
        found: dict[str, list[float]] = {}
        for record in scored:
            found.setdefault(record.scenario, []).append(getattr(record.quality[name], field))
        return {scenario: float(np.mean(values)) for scenario, values in found.items()}

    text = max(
        TEXT, key=lambda name: float(np.mean([record.quality[name].ap for record in scored]))
    )
    rows: dict[str, dict[str, Any]] = {}
    for name in names:
        ap = by_scenario(name, "ap")
        gains = [record.quality[name].ap - record.quality[text].ap for record in scored]
        topical = [
            record.quality[name].auc_topical - record.quality[text].auc_topical for record in scored
        ]
        rows[name] = {
            "ap": float(np.mean(list(ap.values()))),
            "worst_ap": min(ap.values()),
            "worst_scenario": min(ap, key=ap.__getitem__),
            "auc": float(np.mean(list(by_scenario(name, "auc").values()))),
            "precision": float(np.mean(list(by_scenario(name, "precision").values()))),
            "auc_topical": float(np.mean(list(by_scenario(name, "auc_topical").values()))),
            "worst_topical": min(by_scenario(name, "auc_topical").values()),
            "auc_format": float(np.mean(list(by_scenario(name, "auc_format").values()))),
            "text": text,
            "gain": float(np.mean(gains)),
            "gain_interval": bootstrap_interval(gains),
            "gain_topical": float(np.mean(topical)),
            "gain_topical_interval": bootstrap_interval(topical),
            "by_scenario": ap,
        }
    return dict(sorted(rows.items(), key=lambda row: -float(row[1]["ap"])))


def consensus_summary(records: Sequence[Record]) -> dict[str, Any]:
    """Return how well the overlap tells faults in the data from those in the setup."""
    from sklearn.metrics import roc_auc_score

    data = [r.overlap for r in records if r.kind == "data" and r.overlap is not None]
    other = [r.overlap for r in records if r.kind in ("config", "benign") and r.overlap is not None]
    found: dict[str, Any] = {
        "engines": list(VOTERS),
        "data": {"runs": len(data), **_shares(data)},
        "config and benign": {"runs": len(other), **_shares(other)},
    }
    if data and other:
        truth = [1] * len(data) + [0] * len(other)
        found["auc"] = float(roc_auc_score(truth, data + other))
        found[ABOVE] = float(np.mean([value > max(other) for value in data]))
    return found


def _shares(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    array = np.asarray(values)
    return {
        "min": float(array.min()),
        "mean": float(array.mean()),
        "max": float(array.max()),
        f"at least {CONCENTRATED}": float((array >= CONCENTRATED).mean()),
        f"below {DIFFUSE}": float((array < DIFFUSE).mean()),
    }


def page(
    records: Sequence[Record],
    command: str,
    versions: Mapping[str, str],
    builds: Mapping[str, float] | None = None,
) -> str:
    """Return the record as Markdown.

    Parameters
    ----------
    records
        The runs.
    command, versions
        What made them.
    builds
        Costs in index builds, where they were measured.
    """
    told = ", ".join(f"{name} {value}" for name, value in versions.items())
    parts = [
        "# Fidelity",
        f"`{command}` · {told}",
        "What this means: [docs/fidelity.md](../fidelity.md).",
    ]
    for split in ("tuning", "frozen"):
        some = [record for record in records if record.split == split]
        rows = summary(some)
        if rows:
            parts += [
                f"## {split.capitalize()} scenarios",
                _rankings(rows),
                _by_scenario(some, rows),
            ]
        if rows and split == "frozen":
            parts += ["### Bars", _bars(rows, builds)]
    parts += ["## Data or setup", _consensus(records)]
    controls = [v for record in records for v in record.control.values()]
    if controls:
        parts += [
            "## Control",
            (
                f"AUC with permuted labels, {', '.join(VOTERS)}: mean {np.mean(controls):.3f}, "
                f"{min(controls):.3f} to {max(controls):.3f}."
            ),
        ]
    return "\n\n".join([*parts, "## Runs", _runs(records)]) + "\n"


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _rankings(rows: Mapping[str, Mapping[str, Any]]) -> str:
    text = next(iter(rows.values()))["text"]
    head = (
        "ranking",
        "AP",
        "worst AP",
        "AUC",
        "precision at k",
        "AUC, same questions",
        "worst",
        "AUC, same form",
        f"AP over {text} [95 %]",
        f"AUC, same questions, over {text}",
    )
    body = [
        (
            name,
            f"{row['ap']:.2f}",
            f"{row['worst_ap']:.2f} ({row['worst_scenario']})",
            f"{row['auc']:.2f}",
            f"{row['precision']:.2f}",
            f"{row['auc_topical']:.2f}",
            f"{row['worst_topical']:.2f}",
            f"{row['auc_format']:.2f}",
            _gain(row, "gain"),
            _gain(row, "gain_topical"),
        )
        for name, row in rows.items()
        if name in SHOWN
    ]
    return _table(head, body)


def _bars(rows: Mapping[str, Mapping[str, Any]], builds: Mapping[str, float] | None) -> str:
    body = [
        (name, what, bar, value, "yes" if reached else "**no**")
        for name in (DEFAULT, FAST)
        for what, bar, value, reached in bars(rows[name], builds if name == DEFAULT else None)
    ]
    return _table(("ranking", "what", "bar", "value", "reached"), body)


def _gain(row: Mapping[str, Any], name: str) -> str:
    low, high = row[f"{name}_interval"]
    return f"{row[name]:+.2f} [{low:+.2f}, {high:+.2f}]"


def _by_scenario(records: Sequence[Record], rows: Mapping[str, Mapping[str, Any]]) -> str:
    mixed = [record for record in records if record.kind == "mixed" and record.quality]
    scenarios = list(next(iter(rows.values()))["by_scenario"])
    head = ["AP by scenario", *scenarios, *(["mixed"] if mixed else [])]
    body = []
    for name in rows:
        if name not in SHOWN:
            continue
        cells = [f"{rows[name]['by_scenario'][scenario]:.2f}" for scenario in scenarios]
        if mixed:
            cells.append(f"{np.mean([record.quality[name].ap for record in mixed]):.2f}")
        body.append((name, *cells))
    return _table(head, body)


def _consensus(records: Sequence[Record]) -> str:
    found = consensus_summary(records)
    lines = [
        f"Mean pairwise overlap of the top tenths of {'; '.join(VOTERS)}. Chance is .10.",
        "",
    ]
    kinds: dict[str, list[float]] = {}
    for record in records:
        if record.overlap is not None:
            kinds.setdefault(f"{record.kind}: {record.scenario}", []).append(record.overlap)
    lines.append(
        _table(
            ("scenario", "runs", "overlap"),
            [(name, len(v), " ".join(f"{x:.2f}" for x in v)) for name, v in kinds.items()],
        )
    )
    if "auc" in found:
        data, other = found["data"], found["config and benign"]
        key, low = f"at least {CONCENTRATED}", f"below {DIFFUSE}"
        lines += [
            "",
            (
                f"AUC {found['auc']:.3f} over {data['runs']} runs with a data fault and "
                f"{other['runs']} without one; {found[ABOVE]:.2f} of the data faults lie above "
                f"all others. At {CONCENTRATED}: {data[key]:.2f} of the data faults and "
                f"{other[key]:.2f} of the others; below {DIFFUSE}: {data[low]:.2f} and "
                f"{other[low]:.2f}."
            ),
        ]
    return "\n".join(lines)


def _runs(records: Sequence[Record]) -> str:
    body = [
        (
            record.scenario,
            record.kind,
            record.split,
            record.seed,
            record.rows.get("planted", 0),
            f"{record.base:.2f} → {record.tuned:.2f}",
            record.verdict,
        )
        for record in sorted(records, key=lambda r: (r.split, r.kind, r.scenario, r.seed))
    ]
    return _table(("scenario", "fault", "split", "seed", "planted", "accuracy", "gate"), body)
