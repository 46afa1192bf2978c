"""``config.packing_with_completion_loss``."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._read import flag, text, version
from gradian_core.audit import samples
from gradian_core.audit.facts import ExampleFacts, NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

_TRL = frozenset({"trl", "unsloth"})
_SAFE = frozenset({"axolotl", "llamafactory", "torchtune"})
_PAIRS = frozenset({"prompt+completion"})


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {
        "training": samples.training("trl", "0.19.1", packing=True, completion_only_loss=True)
    },
    clean=lambda: {
        "training": samples.training("trl", "0.24.0", packing=True, completion_only_loss=True)
    },
)
def packing_with_completion_loss(
    training: TrainingConfig, examples: ExampleFacts | None = None
) -> Iterator[Finding]:
    """Packing combined with completion-only loss.

    Why it matters: packing lays rows end to end, and the mask that keeps the loss off the prompts
    has to go along. In trl 0.17.0 to 0.19.x it did not: the masks were dropped without a word, and
    the model was trained on prompts as well.

    How to fix: trl 0.20 or later, or ``packing: false``.

    Threshold: trl 0.17.0 to 0.19.x with packing and a completion or assistant mask high; before
    0.17, which has no such masks, medium; the ``wrapped`` strategy, which cuts answers in two, with
    a mask medium. trl since 0.20.0, axolotl, LLaMA-Factory and torchtune keep their masks. Source:
    ``sft_trainer.py`` of each release.

    Not assessed: where packing is on and trl's version is not known.
    """
    if flag(training, "packing") is not True or training.tool in _SAFE:
        return
    masked = _wants_mask(training, examples)
    if not masked:
        return
    if training.tool not in _TRL and "trl" not in training.versions:
        raise NotAssessed(f"It is not known how {training.tool} packs masks.")
    release = version(training, "trl")
    if release is None:
        raise NotAssessed("Packing is on, but trl's version is not known.")
    shown = ".".join(map(str, release))
    evidence = {
        "trl": shown,
        "packing": True,
        "packing_strategy": training.get("packing_strategy"),
        "mask": masked,
    }
    if (0, 17) <= release < (0, 20):
        yield Finding(
            id="config.packing_with_completion_loss",
            severity=Severity.HIGH,
            title=f"trl {shown} drops the {masked} mask when it packs: the loss was on everything",
            detail="It selects input_ids alone before packing, and says nothing.",
            fix="Upgrade to trl 0.20 or later, or set packing: false.",
            evidence=evidence,
        )
    elif release < (0, 17):
        yield Finding(
            id="config.packing_with_completion_loss",
            severity=Severity.MEDIUM,
            title=f"trl {shown} cannot pack with a loss on answers only",
            detail="Its completion collator refuses packing, and without it prompts are trained.",
            fix="Upgrade to trl 0.20 or later, or set packing: false.",
            evidence=evidence,
        )
    elif text(training, "packing_strategy") == "wrapped":
        yield Finding(
            id="config.packing_with_completion_loss",
            severity=Severity.MEDIUM,
            title="Wrapped packing cuts answers in two at sequence borders",
            detail="The second half of an answer is then trained without its prompt.",
            fix="Set packing_strategy: bfd, or packing: false.",
            evidence=evidence,
        )


def _wants_mask(training: TrainingConfig, examples: ExampleFacts | None) -> str | None:
    """Return which mask the run meant to have, None for a loss on everything."""
    if flag(training, "assistant_only_loss"):
        return "assistant"
    if "completiononly" in (text(training, "collator") or "").replace("_", ""):
        return "completion"
    wanted = flag(training, "completion_only_loss")
    if wanted is None and examples is not None:
        # trl masks prompts by itself where rows have a prompt and a completion
        shapes = {examples.shape_names[i] for i in set(examples.shapes.tolist())}
        release = version(training, "trl")
        wanted = bool(shapes) and shapes <= _PAIRS and release is not None and release >= (0, 17)
    return "completion" if wanted else None
