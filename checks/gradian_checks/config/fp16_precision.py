"""``config.fp16_precision``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradian_checks._read import flag, known, model_name, origin, text
from gradian_checks._trouble import silent_norms
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

_WIDE = re.compile(r"(?<![a-z])(?:gemma|m?t5|flan|ul2)(?![a-z])")
_NO_BF16 = re.compile(r"\b(?:t4|v100|p100|p40|k80|mps|gtx|titan|rtx\s*20\d\d)\b|apple")


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {"training": samples.training(fp16=True, bf16=False)},
    clean=lambda: {"training": samples.training(fp16=False, bf16=True)},
)
def fp16_precision(
    training: TrainingConfig, adapter: AdapterInfo | None = None, log: LogFacts | None = None
) -> Iterator[Finding]:
    """fp16 rather than bf16.

    Why it matters: float16 ends at 65,504. Activations of models that were trained in bfloat16
    go beyond that, the loss becomes NaN or exactly zero, and the adapter is dead.

    How to fix: ``bf16: true`` on every GPU since Ampere.

    Threshold: fp16 without bf16 (low; info where the hardware has no bfloat16); high where the
    log has non-finite gradient norms in a row, or the model is a Gemma or T5, which are known to
    overflow. One overflow by itself, or some in the first steps, is how a loss scaler works.

    Not assessed: where the precision is not recorded.
    """
    if not known(training, "fp16") and not known(training, "bf16"):
        raise NotAssessed("The precision of training is not recorded.")
    if flag(training, "fp16") is not True or training.get("bf16") not in (None, False):
        return
    model = model_name(training, adapter) or ""
    overflows = 0 if log is None else silent_norms(log)
    wide = bool(_WIDE.search(model.lower()))
    device = text(training, "device") or ""
    if overflows >= 2 or wide:
        severity = Severity.HIGH
    else:
        severity = Severity.INFO if _NO_BF16.search(device) else Severity.LOW
    reasons = ["float16 overflows above 65,504, which bfloat16 does not."]
    if overflows >= 2:
        reasons.append(f"The log has {overflows} non-finite gradient norms in a row.")
    if wide:
        reasons.append(f"{model} is of a family that is known to overflow.")
    if severity is Severity.INFO:
        reasons.append(f"{device} has no bfloat16, so there is little choice.")
    yield Finding(
        id="config.fp16_precision",
        severity=severity,
        title="Training ran in fp16, not bf16",
        detail=" ".join(reasons),
        fix="" if severity is Severity.INFO else "Set bf16: true and fp16: false.",
        evidence={
            "fp16": True,
            "bf16": training.get("bf16"),
            "source": origin(training, "fp16"),
            "non_finite_norms_in_a_row": overflows,
            "base_model": model or None,
        },
    )
