"""``config.known_bad_versions``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from gradian_checks._read import count, version
from gradian_checks._trouble import loss_scale, scale_is_right
from gradian_core.audit import samples
from gradian_core.audit.facts import ExampleFacts, LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig, Value

_PAIRS = frozenset({"prompt+completion"})
_TEXT = frozenset({"text"})


@dataclass(frozen=True, slots=True)
class _Bug:
    severity: Severity
    title: str
    detail: str
    fix: str
    source: str


def _sample(transformers: str) -> dict[str, object]:
    training = samples.training(gradient_accumulation_steps=8)
    versions = {"transformers": Value(transformers, "sample")}
    return {"training": dataclasses.replace(training, versions=versions)}


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: _sample("4.47.1"),
    clean=lambda: _sample("4.52.4"),
)
def known_bad_versions(
    training: TrainingConfig, log: LogFacts | None = None, examples: ExampleFacts | None = None
) -> Iterator[Finding]:
    """Library versions with a known training bug.

    Why it matters: some releases trained wrongly and said nothing.

    How to fix: upgrade, and train again.

    Threshold: transformers 4.46.0 to 4.48.x with gradient accumulation, whose loss was scaled by
    it (low; nothing where the log shows training and eval loss at one scale); trl 0.24 with
    transformers 5.5 or later on prompt and completion rows, which computes prompt lengths wrongly
    and trains on prompts (high); trl before 0.16 on text rows, which appends no end token (low).

    Not assessed: where no version is known.
    """
    versions = {name: version(training, name) for name in ("transformers", "trl")}
    if not any(versions.values()):
        raise NotAssessed("No versions of transformers or trl are recorded.")
    for bug in _bugs(training, log, examples):
        shown = {name: ".".join(map(str, release)) for name, release in versions.items() if release}
        yield Finding(
            id="config.known_bad_versions",
            severity=bug.severity,
            title=bug.title,
            detail=bug.detail,
            fix=bug.fix,
            evidence={"versions": shown, "reported": bug.source},
        )


def _bugs(
    training: TrainingConfig, log: LogFacts | None, examples: ExampleFacts | None
) -> Iterator[_Bug]:
    transformers, trl = version(training, "transformers"), version(training, "trl")
    accumulation = count(training, "gradient_accumulation_steps") or 1
    shapes = frozenset[str]()
    if examples is not None:
        shapes = frozenset(examples.shape_names[i] for i in set(examples.shapes.tolist()))
    if transformers is not None and (4, 46) <= transformers < (4, 49) and accumulation > 1:
        proved = log is not None and scale_is_right(log)
        if not proved:
            seen = log is not None and loss_scale(log, training) is not None
            yield _Bug(
                Severity.LOW,
                "transformers 4.46 to 4.48 scaled the loss by the gradient accumulation",
                "The logged training loss may be too high by a factor of "
                f"{accumulation}, and clipping acts on gradients that are too large."
                + (" The log shows it." if seen else ""),
                "Upgrade transformers to 4.49 or later.",
                "transformers#37766, #35438",
            )
    pair_bug = trl is not None and trl[:2] == (0, 24) and (transformers or (0,)) >= (5, 5)
    if pair_bug and shapes & _PAIRS:
        yield _Bug(
            Severity.HIGH,
            "trl 0.24 with transformers 5.5 or later trains on prompts",
            "It takes the length of a dict for the length of the prompt, which is then 2.",
            "Upgrade trl, or keep transformers below 5.5.",
            "trl#6105",
        )
    if trl is not None and trl < (0, 16) and shapes & _TEXT:
        yield _Bug(
            Severity.LOW,
            "trl before 0.16 appends no end token to text rows",
            "Unless the rows end with one, the model does not learn to stop.",
            "Upgrade trl to 0.16 or later, or end each row with the end token.",
            "trl#1623, #3091",
        )
