"""``config.attention_only_targets``."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._families import family
from gradian_checks._targets import targets
from gradian_core.audit import samples
from gradian_core.audit.facts import ExampleFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo

_SMALL = 500
_LLAMA = frozenset({"gate_proj", "up_proj", "down_proj"})


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {"adapter": samples.adapter(target_modules=["q_proj", "v_proj"])},
    clean=lambda: {"adapter": samples.adapter(target_modules="all-linear")},
)
def attention_only_targets(
    adapter: AdapterInfo, examples: ExampleFacts | None = None
) -> Iterator[Finding]:
    """target_modules covers attention only.

    Why it matters: most of what a model knows sits in its MLP layers. Adapters on attention alone
    learn less from the same data, even at the same number of parameters.

    How to fix: ``target_modules="all-linear"``, or add the MLP's names.

    Threshold: no MLP module among the targets that the model has (medium; low below 500 rows).
    Names are matched as PEFT matches them, by whole dotted ends, so GPT-2's ``c_proj`` reaches
    the MLP; without targets, PEFT's default for the family counts. Sources: *LoRA Without Regret*
    (Thinking Machines), Biderman et al. 2024, PEFT's method comparison.

    Not assessed: for adapters other than LoRA, and for names or expressions that it cannot place.
    """
    if adapter.peft_type.upper() != "LORA":
        raise NotAssessed(f"Not a LoRA adapter: its method is {adapter.peft_type}.")
    reach = targets(adapter)
    if reach.everything or reach.mlp:
        return
    if reach.unknown or not reach.attention:
        names = ", ".join(reach.unknown) or "none that the model has"
        raise NotAssessed(f"It is not known what these targets are: {names}.")
    model = family(adapter.base_model)
    names = ", ".join(reach.attention)
    few = examples is not None and len(examples) < _SMALL
    yield Finding(
        id="config.attention_only_targets",
        severity=Severity.LOW if few else Severity.MEDIUM,
        title=f"The adapter covers attention only: {names}",
        detail=(
            "No target is given, so PEFT adapts its default for the model."
            if reach.by_default
            else "None of the targets reaches an MLP layer of the model."
        ),
        fix=(
            "Set target_modules to all-linear, or add "
            f"{', '.join(sorted(model.mlp if model else _LLAMA))}."
        ),
        evidence={
            "target_modules": list(reach.attention),
            "by_default": reach.by_default,
            "base_model": adapter.base_model,
            "rows": None if examples is None else len(examples),
        },
        because_of="config.target_modules_unmatched" if reach.misses_mlp else None,
    )
