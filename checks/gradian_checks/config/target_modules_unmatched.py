"""``config.target_modules_unmatched``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradian_checks._families import family
from gradian_checks._targets import ALL_LINEAR, matches, named_targets
from gradian_checks._weights import adapter_weights
from gradian_core.audit import samples
from gradian_core.audit.facts import NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo

_ELSEWHERE = ALL_LINEAR | {"lm_head", "embed_tokens", "wte", "embed_out"}


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {
        "adapter": samples.adapter(
            base_model_name_or_path="microsoft/phi-2",
            target_modules=["qkv_proj", "out_proj", "dense"],
        )
    },
    clean=lambda: {
        "adapter": samples.adapter(
            base_model_name_or_path="microsoft/phi-2", target_modules=["q_proj", "fc1", "fc2"]
        )
    },
)
def target_modules_unmatched(adapter: AdapterInfo) -> Iterator[Finding]:
    """target_modules that the model does not have.

    Why it matters: PEFT stops only when *no* target matches. With one that does, the others are
    passed over in silence, and the adapter covers far less than was meant.

    How to fix: use the model's own names, or ``target_modules="all-linear"``.

    Threshold: half of the names or more match nothing (medium), or fewer (low). What matched is
    read from the adapter's weights, and without them from the published module names of the
    family.

    Not assessed: for regular expressions, and for models that are not known without weights.
    """
    if adapter.peft_type.upper() != "LORA":
        raise NotAssessed(f"Not a LoRA adapter: its method is {adapter.peft_type}.")
    names = named_targets(adapter)
    if names is None or names in ALL_LINEAR:
        return
    if isinstance(names, str):
        raise NotAssessed("The targets are an expression, not a list of names.")
    modules, known_by = _modules(adapter)
    listed = [name for name in names if name not in _ELSEWHERE]
    missing = [name for name in listed if not any(matches(name, m) for m in modules)]
    if not missing:
        return
    yield Finding(
        id="config.target_modules_unmatched",
        severity=Severity.MEDIUM if len(missing) >= len(listed) / 2 else Severity.LOW,
        title=f"{len(missing)} of {len(listed)} target modules match nothing: {', '.join(missing)}",
        detail=f"That is what {known_by} say.",
        fix=f"Set target_modules to all-linear, or choose among {', '.join(sorted(modules)[:12])}.",
        evidence={
            "unmatched": missing,
            "target_modules": listed,
            "base_model": adapter.base_model,
            "known_by": known_by,
        },
    )


def _modules(adapter: AdapterInfo) -> tuple[frozenset[str], str]:
    """Return the names of the modules that can match, and how they are known.

    Raises
    ------
    NotAssessed
        If there are neither weights nor a known family.
    """
    try:
        weights = adapter_weights(adapter)
    except NotAssessed:
        model = family(adapter.base_model)
        if model is None:
            raise NotAssessed(
                f"The modules of {adapter.base_model or 'the base model'} are not known."
            ) from None
        return model.modules, f"the published module names of {model.name}"
    paths = {
        re.split(r"\.lora_", name)[0].removeprefix("base_model.model.")
        for name in weights.tensors
        if ".lora_" in name
    }
    # the last two parts tell attn.c_proj from mlp.c_proj and are short enough to show
    ends = frozenset(".".join(path.split(".")[-2:]) for path in paths)
    return ends, "the adapter's weights"
