"""``config.capacity_vs_data``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradian_checks._weights import adapter_weights
from gradian_checks._weights_sample import adapter_with
from gradian_core.audit import samples
from gradian_core.audit.facts import ExampleFacts, NotAssessed, TokenFacts
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo

_BANDS = ((10.0, Severity.HIGH), (2.0, Severity.MEDIUM))
_SPARE = 1000.0


def _sample(tokens_per_parameter: float) -> dict[str, object]:
    tokens = samples.tokens(n=50)
    half = max(int(tokens.tokens.supervised_counts.sum() / tokens_per_parameter) // 2, 1)
    matrix = np.ones((1, half), np.float32)
    adapter = adapter_with({"q_proj.lora_A.weight": matrix, "q_proj.lora_B.weight": matrix.T})
    return {"tokens": tokens, "adapter": adapter}


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: _sample(3.0),
    clean=lambda: _sample(0.5),
)
def capacity_vs_data(
    adapter: AdapterInfo, tokens: TokenFacts, examples: ExampleFacts | None = None
) -> Iterator[Finding]:
    """Adapter capacity large relative to the data.

    Why it matters: a parameter holds about two bits, and a token of text brings about one. An
    adapter with fewer parameters than that cannot hold what the data says, and learns it badly.
    The other way round is no fault: a high rank on little data costs memory and nothing else.

    How to fix: a higher rank, or more target modules.

    Threshold: more than 2 supervised tokens a trainable parameter medium, more than 10 high; a
    thousand times more parameters than tokens is told as info. Source: *LoRA Without Regret*.

    Not assessed: without the adapter's weights, whose header gives the number of parameters.
    """
    if adapter.peft_type.upper() != "LORA":
        raise NotAssessed(f"Not a LoRA adapter: its method is {adapter.peft_type}.")
    weights = adapter_weights(adapter)
    parameters = sum(tensor.size for tensor in weights.tensors.values())
    supervised = float(tokens.tokens.supervised_counts.sum())
    if tokens.sampled is not None:
        if examples is None or not len(tokens.tokens):
            raise NotAssessed("The tokens are of a sample, and the number of rows is not known.")
        supervised *= len(examples) / len(tokens.tokens)
    if not parameters or not supervised:
        raise NotAssessed("There are no parameters, or no supervised tokens, to compare.")
    ratio = supervised / parameters
    evidence = {
        "trainable_parameters": parameters,
        "supervised_tokens": round(supervised),
        "tokens_per_parameter": ratio,
        "sampled": tokens.sampled is not None,
    }
    severity = next((s for bound, s in _BANDS if ratio > bound), None)
    if severity is not None:
        rank = f"r={round(adapter.r * ratio / _BANDS[-1][0])}" if adapter.r else "a higher rank"
        yield Finding(
            id="config.capacity_vs_data",
            severity=severity,
            title=f"The data has {ratio:.1f} supervised tokens for each parameter of the adapter",
            detail=f"{supervised:,.0f} tokens against {parameters:,} trainable parameters.",
            fix=f"Train with {rank}, or adapt more modules.",
            evidence=evidence,
        )
    elif ratio * _SPARE < 1:
        yield Finding(
            id="config.capacity_vs_data",
            severity=Severity.INFO,
            title=f"The adapter has {1 / ratio:,.0f} parameters for each supervised token",
            detail="That is no fault by itself; watch for overfitting.",
            evidence=evidence,
        )
