"""A template that ends turns with a token at which nobody stops."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._data_template import require_own_template
from gradian_core.audit.facts import ExampleFacts, NotAssessed, TokenizerFacts
from gradian_core.audit.samples import tokenizer
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_ENDOFTEXT = 258
"""Id of ``<|endoftext|>`` in the sample tokenizer: 256 bytes, two tokens, and this one."""


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {
        "tokenizer": tokenizer(eos="<|endoftext|>", generation_eos=[_ENDOFTEXT]),
    },
    clean=lambda: {"tokenizer": tokenizer()},
)
def eos_mismatch(
    tokenizer: TokenizerFacts,
    examples: ExampleFacts | None = None,
    training: TrainingConfig | None = None,
) -> Iterator[Finding]:
    """Template ends turns with a token that generation does not stop at.

    Why it matters: the model learns to end its answers with the template's token. If that is
    neither the tokenizer's end token nor one of the generation config's, nothing stops there,
    and the answer runs on into an invented next turn.

    How to fix: set the tokenizer's ``eos_token``, or add the token to ``eos_token_id`` in
    ``generation_config.json``; serving tools read one or the other.

    Threshold: the template's end-of-turn token is in neither of them: high. It is the
    tokenizer's end token, and the generation config names others only: medium.

    Not assessed: without a template or where it writes no token after an answer; where the
    token is not the tokenizer's and there is no generation config (Gemma names its
    end-of-turn token there); for raw text.
    """
    require_own_template(training)
    if examples is not None and len(examples) and not bool((examples.turns > 0).any()):
        raise NotAssessed("The rows are raw text, which no template ends.")
    end = tokenizer.end_of_turn
    if end is None:
        raise NotAssessed("There is no chat template that ends turns with a token.")
    is_eos = tokenizer.eos is not None and end[1] == tokenizer.eos[1]
    stops = tokenizer.generation_eos
    if end[1] in stops or (is_eos and not stops):
        return
    if not stops:
        raise NotAssessed(
            f"Turns end with {end[0]}, which is not the tokenizer's end token; whether "
            "generation stops there stands in generation_config.json, which is not at hand."
        )
    eos = "none" if tokenizer.eos is None else tokenizer.eos[0]
    names = [str(tokenizer.tokenizer.convert_ids_to_tokens(i)) for i in sorted(stops)]
    yield Finding(
        id="data.eos_mismatch",
        severity=Severity.MEDIUM if is_eos else Severity.HIGH,
        title=f"Turns end with {end[0]}, but generation stops at {', '.join(names)}",
        detail=f"The tokenizer's end token is {eos}; generation_config.json names "
        f"{', '.join(names)}. Tools that read the latter do not stop at the end of an answer.",
        fix=f"Add {end[1]} ({end[0]}) to eos_token_id in generation_config.json"
        + ("." if is_eos else f", or set eos_token to {end[0]}."),
        evidence={
            "end_of_turn": end[0],
            "end_of_turn_id": end[1],
            "eos_token": eos,
            "generation_eos": sorted(stops),
        },
    )
