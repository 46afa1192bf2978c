"""``config.seed_unset``."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._read import by_default, known, origin
from gradian_core.audit import samples
from gradian_core.audit.facts import NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig, Value


@check(
    severity=Severity.LOW,
    since="0.1",
    trips=lambda: {"training": samples.training("torchtune", seed=Value(None, "config.yaml"))},
    clean=lambda: {"training": samples.training(seed=42)},
)
def seed_unset(training: TrainingConfig) -> Iterator[Finding]:
    """No seed recorded.

    Why it matters: without a seed no run can be repeated, and a retrained adapter differs from
    this one for two reasons instead of one.

    How to fix: ``seed: 42``.

    Threshold: a seed of nothing where that means a new one each time, as in torchtune (low). Where
    the tool has a default (42 on transformers' Trainer, 3407 in unsloth, 0 in mlx-lm) the run can
    be repeated, and the finding only names it (info).

    Not assessed: where neither a seed nor a default is known.
    """
    if not known(training, "seed"):
        raise NotAssessed("No file that was read records a seed.")
    seed = training.get("seed")
    if seed is None:
        yield Finding(
            id="config.seed_unset",
            severity=Severity.LOW,
            title="No seed is set, so each run draws another one",
            detail=f"{training.tool} takes a random seed for null.",
            fix="Set seed: 42.",
            evidence={"seed": None, "source": origin(training, "seed")},
        )
    elif by_default(training, "seed"):
        yield Finding(
            id="config.seed_unset",
            severity=Severity.INFO,
            title=f"No seed is set; {training.tool} uses {seed}",
            detail="The run can be repeated as long as that default stays.",
            evidence={"seed": seed, "source": origin(training, "seed")},
        )
