"""``config.pad_equals_eos``."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._families import family
from gradian_checks._read import model_name, spelled, text, version
from gradian_core.audit import samples
from gradian_core.audit.facts import NotAssessed, TokenizerFacts
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

_PLAIN = ("datacollatorforlanguagemodeling", "completiononly")
_BY_POSITION = frozenset({"axolotl", "llamafactory", "torchtune", "mlx-lm", "unsloth"})
_SET_AT_TRAINING = frozenset({"transformers", "trl", "llamafactory"})


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {
        "training": samples.training("trl", "0.15.2"),
        "tokenizer": samples.tokenizer(eos="<|im_end|>", pad="<|im_end|>"),
    },
    clean=lambda: {
        "training": samples.training("trl", "0.15.2"),
        "tokenizer": samples.tokenizer(eos="<|im_end|>", pad="<|pad|>"),
    },
)
def pad_equals_eos(
    training: TrainingConfig,
    tokenizer: TokenizerFacts | None = None,
    adapter: AdapterInfo | None = None,
) -> Iterator[Finding]:
    """pad_token is the eos_token.

    Why it matters: transformers' language-modelling collator takes every padding token out of the
    loss *by its id*. If the end token has the same id it is never a target, and the model never
    learns to stop.

    How to fix: a padding token of its own, such as one of the model's reserved tokens; or a tool
    that masks padding by position.

    Threshold: high with ``DataCollatorForLanguageModeling``, trl's completion-only collator, and
    trl up to 0.16; else info, since trl from 0.17.0, axolotl, LLaMA-Factory, torchtune and mlx-lm
    mask by position.

    Not assessed: where the tokens are not known; and where they are the same, but the collator of
    a plain ``Trainer`` or the version of trl is not known.
    """
    eos, pad = _tokens(training, tokenizer, adapter)
    if pad is None or eos is None:
        raise NotAssessed("The padding and end tokens are not known.")
    if pad != eos:
        return
    reason = _by_id(training)
    release = version(training, training.tool)
    tool = f"{training.tool} {'.'.join(map(str, release))}" if release else training.tool
    yield Finding(
        id="config.pad_equals_eos",
        severity=Severity.HIGH if reason else Severity.INFO,
        title=(
            f"Padding and end token are both {eos}, and {reason} takes it out of the loss"
            if reason
            else f"Padding and end token are both {eos}"
        ),
        detail=(
            "No end token is a target, so the model does not learn to stop."
            if reason
            else f"Harmless here: {tool} masks padding by position, so the end token is learnt."
        ),
        fix="Set pad_token to a reserved token of the model and train again." if reason else "",
        evidence={"pad_token": pad, "eos_token": eos, "tool": tool, "masked_by_id": reason},
    )


def _tokens(
    training: TrainingConfig, tokenizer: TokenizerFacts | None, adapter: AdapterInfo | None
) -> tuple[str | None, str | None]:
    """Return ``(eos, pad)`` as the run had them."""
    eos, pad = spelled(training, "eos_token"), spelled(training, "pad_token")
    if tokenizer is not None:
        eos = eos or (tokenizer.eos[0] if tokenizer.eos else None)
        pad = pad or (tokenizer.pad[0] if tokenizer.pad else None)
        if pad is None and training.tool in _SET_AT_TRAINING:
            pad = eos
    if eos is None:
        name = model_name(training, adapter)
        model = family(name)
        eos = model.end_token(str(name)) if model else None
    # a script may say pad_token = eos_token without naming either
    if pad is not None and pad.rsplit(".", 1)[-1] == "eos_token":
        return (eos or "the end token",) * 2
    return eos, pad


def _by_id(training: TrainingConfig) -> str | None:
    """Return what masks padding by token id in this run, None if it is masked by position.

    Raises
    ------
    NotAssessed
        If neither is known.
    """
    named = spelled(training, "collator")
    collator = (text(training, "collator") or "").replace("_", "")
    if any(name in collator for name in _PLAIN):
        return named
    trl = version(training, "trl")
    if trl is not None:
        return f"trl {'.'.join(map(str, trl))}" if trl < (0, 17) else None
    if training.tool in _BY_POSITION or (named and training.tool != "trl"):
        return None
    raise NotAssessed(
        "Padding and end token are the same, and it is not known how this run masked padding: "
        "DataCollatorForLanguageModeling and trl before 0.17 take the end token out of the loss."
    )
