"""``config.ignored_config_key``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from gradian_checks._read import shown_value
from gradian_core.audit import samples
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig, UnknownKey
from gradian_core.runs.settings import SETTINGS, coerce

_SHOWN = 20


def _sample(*keys: UnknownKey) -> dict[str, object]:
    training = samples.training("axolotl", num_train_epochs=1.0)
    return {"training": dataclasses.replace(training, unknown_keys=keys)}


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: _sample(UnknownKey(name="num_train_epochs", value=3, source="config.yml:37")),
    clean=_sample,
)
def ignored_config_key(training: TrainingConfig) -> Iterator[Finding]:
    """Config keys that the tool does not know and ignored.

    Why it matters: axolotl and mlx-lm pass over keys that they do not know. Who writes
    ``num_train_epochs: 3`` for axolotl, which calls it ``num_epochs``, trains for one epoch and is
    not told.

    How to fix: use the tool's own name, which the finding gives where one is close.

    Threshold: a key that stands for a setting which then had another value (high); one that is
    close to a known key, or that describes the data (medium); any other (low).

    Not assessed: for tools whose keys are not known; tools that refuse unknown keys need no check.
    """
    keys = training.unknown_keys
    if not keys:
        return
    lost = [key for key in keys if _lost(key, training)]
    close = [key for key in keys if key.meant or key.name.startswith("datasets.")]
    severity = Severity.HIGH if lost else Severity.MEDIUM if close else Severity.LOW
    first = (lost or close or list(keys))[0]
    others = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
    yield Finding(
        id="config.ignored_config_key",
        severity=severity,
        title=f"{training.tool} does not know {first.name}{others}, and ignored it",
        detail="; ".join(_line(key, training) for key in keys[:_SHOWN])
        + (f"; and {len(keys) - _SHOWN} more." if len(keys) > _SHOWN else "."),
        fix=(
            f"Write {first.meant}: {shown_value(first.value)} ({first.source})."
            if first.meant
            else f"Remove {first.name} ({first.source}), or look up its name in the tool's schema."
        ),
        evidence={
            "tool": training.tool,
            "keys": [key.name for key in keys],
            "lost": [key.name for key in lost],
            "first": first.source,
        },
    )


def _lost(key: UnknownKey, training: TrainingConfig) -> bool:
    """Whether a setting that the key stands for had another value in the run."""
    found = training.values.get(key.name)
    if key.name not in SETTINGS or found is None or key.value is None:
        return False
    return bool(coerce(key.name, key.value) != found.value)


def _line(key: UnknownKey, training: TrainingConfig) -> str:
    text = f"{key.source}: {key.name}"
    if _lost(key, training):
        was, is_ = shown_value(key.value), shown_value(training.get(key.name))
        text += f" asks for {was}, the run had {is_}"
    return f"{text} (did you mean {key.meant}?)" if key.meant else text
