"""``config.packing_contamination``."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._read import flag, origin, text
from gradian_core.audit import samples
from gradian_core.audit.facts import NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_VARLEN = ("flash", "flex", "xformers")
_PLAIN = frozenset({"sdpa", "eager"})


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {
        "training": samples.training("trl", "0.24.0", packing=True, attn_implementation="sdpa")
    },
    clean=lambda: {
        "training": samples.training(
            "trl", "0.24.0", packing=True, attn_implementation="flash_attention_2"
        )
    },
)
def packing_contamination(training: TrainingConfig) -> Iterator[Finding]:
    """Packed rows that attend to each other.

    Why it matters: rows that share a sequence see those before them unless the attention is told
    where one ends. The model then learns to read on from unrelated text.

    How to fix: ``attn_implementation: flash_attention_2`` in trl, ``neat_packing: true`` in
    LLaMA-Factory, or no packing.

    Threshold: packing without attention that keeps rows apart (medium). Source: trl's own warning;
    the same data gave 44.1 apart and 37.6 packed without a mask (functionary#265).

    Not assessed: where packing is on and the attention is not known.
    """
    if flag(training, "packing") is not True:
        return
    isolated = flag(training, "packing_isolated")
    attention = text(training, "attn_implementation")
    if isolated is None and attention is not None:
        isolated = any(name in attention for name in _VARLEN)
        isolated = isolated or (None if attention not in _PLAIN else False)
    if isolated is None:
        raise NotAssessed("Packing is on, but which attention was used is not recorded.")
    if isolated:
        return
    by = "packing_isolated" if flag(training, "packing_isolated") is False else "packing"
    yield Finding(
        id="config.packing_contamination",
        severity=Severity.MEDIUM,
        title="Packed rows attend to the rows before them",
        detail=f"Nothing keeps the rows of a packed sequence apart ({origin(training, by)}).",
        fix=(
            "Set neat_packing: true."
            if training.tool == "llamafactory"
            else "Set attn_implementation: flash_attention_2, or packing: false."
        ),
        evidence={
            "packing": True,
            "attn_implementation": training.get("attn_implementation"),
            "tool": training.tool,
        },
    )
