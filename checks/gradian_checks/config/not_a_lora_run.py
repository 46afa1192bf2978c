"""``config.not_a_lora_run``."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._lora import full_fine_tune
from gradian_checks._read import origin, text
from gradian_core.audit import samples
from gradian_core.audit.facts import NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

_LORA = frozenset({"lora", "dora", "qlora", "rslora", "lora+"})


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {"training": samples.training("axolotl", finetuning_type="full")},
    clean=lambda: {
        "training": samples.training("axolotl", finetuning_type="lora"),
        "adapter": samples.adapter(),
    },
)
def not_a_lora_run(
    training: TrainingConfig | None = None, adapter: AdapterInfo | None = None
) -> Iterator[Finding]:
    """Not a LoRA run.

    Why it matters: Gradian attributes over the parameters of a LoRA adapter. A full fine-tune has
    none, and needs several times the memory that LoRA does. axolotl trains all weights where
    ``adapter:`` is missing, which is easily left out.

    How to fix: ``adapter: lora`` in axolotl, ``finetuning_type: lora`` in LLaMA-Factory, a
    ``peft_config`` in trl.

    Threshold: a config that trains the model's own weights (medium); an adapter of another method,
    such as IA3 (low), on which the checks for LoRA are not assessed.

    Not assessed: where neither is known.
    """
    if adapter is not None:
        if adapter.peft_type.upper() != "LORA":
            yield Finding(
                id="config.not_a_lora_run",
                severity=Severity.LOW,
                title=f"The adapter is {adapter.peft_type}, not LoRA",
                detail="The checks for LoRA do not apply, and attribution needs a LoRA adapter.",
                fix="Train a LoRA adapter to use attribution.",
                evidence={"peft_type": adapter.peft_type},
            )
        return
    method = text(training, "finetuning_type")
    if training is None or method is None:
        raise NotAssessed("The method of fine-tuning is not recorded.")
    if method in _LORA:
        return
    full = full_fine_tune(training)
    yield Finding(
        id="config.not_a_lora_run",
        severity=Severity.MEDIUM if full else Severity.LOW,
        title=(
            "This is a full fine-tune: no adapter is configured"
            if full
            else f"The method is {method}, not LoRA"
        ),
        detail=f"Known by {origin(training, 'finetuning_type')}. There is nothing to attribute.",
        fix="Set adapter: lora and train again."
        if training.tool == "axolotl"
        else "Train a LoRA adapter to use attribution.",
        evidence={"finetuning_type": method, "tool": training.tool},
    )
