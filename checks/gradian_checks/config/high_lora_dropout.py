"""``config.high_lora_dropout``."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gradian_checks._read import as_number
from gradian_core.audit import samples
from gradian_core.audit.facts import ExampleFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo

_BANDS = ((0.5, Severity.HIGH), (0.3, Severity.MEDIUM))
_LOW = 0.1


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {"adapter": samples.adapter(lora_dropout=0.3)},
    clean=lambda: {"adapter": samples.adapter(lora_dropout=0.1)},
)
def high_lora_dropout(
    adapter: AdapterInfo, examples: ExampleFacts | None = None
) -> Iterator[Finding]:
    """High LoRA dropout on a small dataset.

    Why it matters: dropout takes input away from an adapter that is small already. On little
    data it learns slowly and unevenly.

    How to fix: ``lora_dropout: 0.05``, or 0.

    Threshold: above 0.1 low, from 0.3 medium, from 0.5 high; above 1 is a percentage written as a
    share (high). Guides say 0 to 0.1: PEFT 0, trl's command line and QLoRA 0.05 to 0.1.

    Not assessed: for adapters other than LoRA, and where the dropout is not recorded.
    """
    if adapter.peft_type.upper() != "LORA":
        raise NotAssessed(f"Not a LoRA adapter: its method is {adapter.peft_type}.")
    dropout = as_number(adapter.raw.get("lora_dropout"))
    if dropout is None or not 0 <= dropout < math.inf:
        raise NotAssessed("The adapter's dropout is not recorded.")
    if not dropout > _LOW:
        return
    severity = next((s for bound, s in _BANDS if dropout >= bound), Severity.LOW)
    percent = dropout > 1
    yield Finding(
        id="config.high_lora_dropout",
        severity=severity,
        title=(
            f"lora_dropout={dropout:g} looks like a percentage: it is a share from 0 to 1"
            if percent
            else f"lora_dropout={dropout:g} is high"
        ),
        detail="Common values are 0 to 0.1.",
        fix=f"Set lora_dropout: {dropout / 100:g}." if percent else "Set lora_dropout: 0.05.",
        evidence={
            "lora_dropout": dropout,
            "rows": None if examples is None else len(examples),
        },
    )
