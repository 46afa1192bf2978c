"""``config.base_model_mismatch``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradian_checks._names import base_name, is_local
from gradian_checks._read import spelled
from gradian_core.audit import samples
from gradian_core.audit.facts import NotAssessed, TokenizerFacts
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

_QUANTISED = re.compile(
    r"-(?:unsloth-bnb-4bit|bnb-4bit|bnb-8bit|4bit|8bit|int4|int8|gptq|awq|gguf|fp8|nf4"
    r"|q\d(?:-\w+)*|dynamic|mlx)(?=-|$)"
)
_SAME = re.compile(r"-(?:hf|bf16|fp16|fp32)(?=-|$)|^meta-")
_SIZE = re.compile(r"^(?:\d+x)?\d+(?:\.\d+)?[bm]$")
_KIND = frozenset({"instruct", "chat", "it", "base", "pt"})
_RELEASE = re.compile(r"^(?:v\d+(?:\.\d+)*|\d{4}|\d{6})$")


@check(
    severity=Severity.CRITICAL,
    since="0.1",
    trips=lambda: {
        "adapter": samples.adapter(base_model_name_or_path="meta-llama/Llama-3.2-1B"),
        "training": samples.training(base_model="Qwen/Qwen2.5-0.5B"),
    },
    clean=lambda: {
        "adapter": samples.adapter(base_model_name_or_path="unsloth/Meta-Llama-3-8B-bnb-4bit"),
        "training": samples.training(base_model="meta-llama/Meta-Llama-3-8B"),
    },
)
def base_model_mismatch(
    adapter: AdapterInfo,
    training: TrainingConfig | None = None,
    tokenizer: TokenizerFacts | None = None,
) -> Iterator[Finding]:
    """Adapter trained on a different base model.

    Why it matters: an adapter is a difference to the weights that it was trained on. On other
    weights it is noise, and the evaluation blames the data for it.

    How to fix: pass the model that ``adapter_config.json`` names as ``--base-model``.

    Threshold: names are compared without owner, case, precision, quantisation and ``Meta-``. Other
    family, version or size critical; base against instruct, or another release, high; a name that
    is a folder, which says nothing about what is in it, info.

    Not assessed: where only one name is known.
    """
    if not adapter.base_model:
        raise NotAssessed("The adapter does not name its base model.")
    others = {}
    if (named := spelled(training, "base_model")) is not None:
        others["the training config"] = named
    # the name of a tokenizer is none of a model: models share tokenizers
    if tokenizer is not None and tokenizer.base_model is not None:
        others["--base-model"] = tokenizer.base_model
    mine = _plain(adapter.base_model)
    local = is_local(adapter.base_model)
    for place, other in others.items():
        if _plain(other) == mine:
            continue
        if local or is_local(other):
            continue
        severity, why = _difference(mine, _plain(other))
        yield Finding(
            id="config.base_model_mismatch",
            severity=severity,
            title=f"The adapter belongs to {adapter.base_model}, not to {other}",
            detail=f"{place[0].upper()}{place[1:]} names another model: {why}.",
            fix=f"Use {adapter.base_model} as the base model.",
            evidence={"adapter": adapter.base_model, "other": other, "named_by": place},
        )
        return
    if local:
        same = any(_plain(other) == mine for other in others.values())
        yield Finding(
            id="config.base_model_mismatch",
            severity=Severity.INFO,
            title=f"The adapter's base model is a folder: {adapter.base_model}",
            detail=(
                "The name of the folder agrees with the rest of the run."
                if same
                else "A folder's name does not prove which model is in it."
            ),
            fix="Set base_model_name_or_path to the hub name before you share the adapter.",
            evidence={"adapter": adapter.base_model, "others": list(others.values())},
        )
    elif not others:
        raise NotAssessed("Only the adapter names a base model; give --base-model to compare.")


def _plain(name: str) -> str:
    """Return a model's name without what does not change which weights it means."""
    return _SAME.sub("", _QUANTISED.sub("", base_name(name).replace("_", "-")))


def _difference(mine: str, other: str) -> tuple[Severity, str]:
    (size, kind, rest), (size2, kind2, rest2) = _parts(mine), _parts(other)
    if size and size2 and size != size2:
        return Severity.CRITICAL, "another size"
    if any(not _RELEASE.match(word) for word in rest ^ rest2):
        return Severity.CRITICAL, "another family or version"
    if kind != kind2:
        return Severity.HIGH, "base and instruct models have different weights"
    return Severity.HIGH, "another release"


def _parts(name: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    # "llama3" and "llama-3" are one name
    words = re.sub(r"(?<=[a-z]{2})-?(?=\d+(?:\.\d+)?(?:-|$))", "-", name).split("-")
    words = [word for word in words if word]
    size = frozenset(word for word in words if _SIZE.match(word))
    kind = frozenset(word for word in words if word in _KIND)
    return size, kind, frozenset(words) - size - kind
