"""``config.requested_vs_actual``."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from gradian_checks._read import as_number, number, shown_value
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig, Value
from gradian_core.runs.settings import coerce

_COMPARED = (
    "num_train_epochs",
    "max_steps",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "total_train_batch_size",
    "learning_rate",
)
_SLACK = 0.1


def _sample(asked: float) -> dict[str, object]:
    training = samples.training("axolotl", num_train_epochs=Value(1.0, "README.md", "ran"))
    requested = {"num_train_epochs": Value(asked, "config.yml:12")}
    return {"training": dataclasses.replace(training, requested=requested)}


@check(severity=Severity.MEDIUM, since="0.1", trips=lambda: _sample(3), clean=lambda: _sample(1))
def requested_vs_actual(training: TrainingConfig, log: LogFacts | None = None) -> Iterator[Finding]:
    """The run did not do what its config asks for.

    Why it matters: what the config says is then not what made this adapter, and every conclusion
    from it is wrong.

    How to fix: find out which of the two was meant, and train again if it was the config.

    Threshold: epochs, steps, batch or learning rate that the trainer recorded differ from those
    asked for; or a run that came to its end did over 10% more or fewer epochs than asked for
    without a cap on steps (medium).

    Not assessed: nothing is compared where only one of the two is known.
    """
    unlike = []
    for name in _COMPARED:
        ran = training.values.get(name)
        if ran is None or ran.basis != "ran":
            continue
        asked = training.requested.get(name)
        ignored = next((key for key in training.unknown_keys if key.name == name), None)
        if asked is None and ignored is not None:
            asked = Value(coerce(name, ignored.value), ignored.source)
        if asked is not None and not _same(name, asked.value, ran.value, training):
            unlike.append((name, asked.value, asked.source, ran.value, ran.source))
    epochs = _epochs(training, log)
    if epochs is not None and not any(entry[0] == "num_train_epochs" for entry in unlike):
        asked_epochs, done = epochs
        source = training.values["num_train_epochs"].source
        unlike.append(("num_train_epochs", asked_epochs, source, round(done, 2), "the log"))
    if not unlike:
        return
    name, wanted, wanted_by, had, had_by = unlike[0]
    yield Finding(
        id="config.requested_vs_actual",
        severity=Severity.MEDIUM,
        title=f"{name}: {shown_value(wanted)} was asked for, {shown_value(had)} ran",
        detail="; ".join(
            f"{n}: {shown_value(a)} by {where}, {shown_value(r)} by {record}"
            for n, a, where, r, record in unlike
        )
        + ".",
        fix=f"If {shown_value(wanted)} was meant, correct {wanted_by} and train again.",
        evidence={
            "asked": {entry[0]: entry[1] for entry in unlike},
            "ran": {entry[0]: entry[3] for entry in unlike},
            "asked_by": wanted_by,
            "ran_by": had_by,
        },
    )


def _same(name: str, asked: object, ran: object, training: TrainingConfig) -> bool:
    a, b = as_number(asked), as_number(ran)
    if a is None or b is None or not (math.isfinite(a) and math.isfinite(b)):
        return True
    if name == "num_train_epochs":
        # max_steps wins over epochs, and trainer_state.json rounds epochs up to a whole number
        capped = (number(training, "max_steps") or 0) > 0
        return capped or math.isclose(a, b, rel_tol=1e-6) or math.ceil(a) == b
    if name == "max_steps":
        # without a cap the trainer records the steps that it worked out
        return a <= 0 or a == b
    if name == "per_device_train_batch_size":
        # trainer_state.json counts the rows of all devices of one process
        return a <= 0 or (b >= a and b % a == 0)
    return math.isclose(a, b, rel_tol=1e-6)


def _epochs(training: TrainingConfig, log: LogFacts | None) -> tuple[float, float] | None:
    """Return ``(asked, done)`` where a whole run did another number of epochs."""
    asked = number(training, "num_train_epochs")
    done = None if log is None else log.epochs_done
    if log is None or not asked or not done or (number(training, "max_steps") or 0) > 0:
        return None
    ended = log.global_step and log.max_steps and log.global_step >= log.max_steps
    return (asked, done) if ended and abs(done / asked - 1) > _SLACK else None
