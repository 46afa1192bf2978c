"""``dynamics.initial_loss_too_high``."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from gradian_checks._families import family
from gradian_checks._read import count, model_name
from gradian_checks._trouble import loss_scale
from gradian_core.audit import samples
from gradian_core.audit.facts import LogFacts, NotAssessed, TokenizerFacts
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

_LARGEST = 262_144
_SMALLEST = 32_000
_NEARLY = 0.8
_EARLY = 0.3


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {"log": samples.log([14.2, 12.0, 9.5])},
    clean=lambda: {"log": samples.log([2.4, 2.2, 1.9])},
)
def initial_loss_too_high(
    log: LogFacts,
    training: TrainingConfig | None = None,
    adapter: AdapterInfo | None = None,
    tokenizer: TokenizerFacts | None = None,
) -> Iterator[Finding]:
    """First loss worse than chance.

    Why it matters: LoRA starts at the base model, whose loss on ordinary text is 1 to 4. A loss of
    ``ln V``, V being the size of the vocabulary, is what guessing gives. A run that starts there
    has the wrong tokenizer, weights that were not loaded, labels that are shifted, or padding in
    its loss.

    How to fix: compare tokenizer and base model, and look at the labels of one batch.

    Threshold: the first loss above ``ln V`` (high), or above 80% of it (medium). Without a known
    vocabulary, V is taken as 262,144 for the first and as 32,000 for the second, the largest and
    smallest in common use. An eval loss at the same step counts rather than the training loss, and
    a training loss that is on another scale is divided by it.

    Not assessed: without a loss in the first 30% of the run.
    """
    first = _first(log, training)
    if first is None:
        raise NotAssessed("No loss was logged in the first third of the run.")
    loss, step, kind = first
    size, source = _vocabulary(adapter, training, tokenizer)
    chance = math.log(size or _LARGEST)
    nearly = _NEARLY * math.log(size or _SMALLEST)
    if loss <= nearly:
        return
    worse = loss > chance
    accumulation = count(training, "gradient_accumulation_steps") or 1
    summed = kind == "training" and accumulation > 1 and loss / accumulation < nearly / 2
    yield Finding(
        id="dynamics.initial_loss_too_high",
        severity=Severity.HIGH if worse and not summed else Severity.MEDIUM,
        title=f"The first {kind} loss is {loss:.3g}, "
        + (f"worse than guessing ({chance:.1f})" if worse else "close to guessing"),
        detail=f"Guessing among {size or _SMALLEST if not worse else size or _LARGEST:,} tokens "
        f"gives {chance if worse else nearly / _NEARLY:.1f} ({source})."
        + (" Added up over the accumulated passes it would be ordinary." if summed else ""),
        fix="Check that tokenizer and base model belong together, and that padding has no loss.",
        evidence={
            "first_loss": loss,
            "step": step,
            "kind": kind,
            "vocabulary": size,
            "chance": chance,
        },
    )


def _first(log: LogFacts, training: TrainingConfig | None) -> tuple[float, int | None, str] | None:
    train = np.isfinite(log.loss)
    held = np.isfinite(log.eval_loss)
    end = log.global_step or log.max_steps
    options: list[tuple[float, float, str]] = []
    if held.any():
        options.append((float(log.eval_step[held][0]), float(log.eval_loss[held][0]), "eval"))
    if train.any():
        scale = loss_scale(log, training)
        value = float(log.loss[train][0]) / (scale.ratio if scale else 1.0)
        options.append((float(log.step[train][0]), value, "training"))
    if not options:
        return None
    # an eval loss comes first in the list, so it wins at the same step
    step, loss, kind = min(options, key=lambda option: option[0] if option[0] >= 0 else math.inf)
    if math.isfinite(step) and end and step > max(_EARLY * end, 5):
        return None
    return loss, int(step) if math.isfinite(step) else None, kind


def _vocabulary(
    adapter: AdapterInfo | None,
    training: TrainingConfig | None,
    tokenizer: TokenizerFacts | None,
) -> tuple[int | None, str]:
    if tokenizer is not None:
        return tokenizer.vocab_size, "the tokenizer's vocabulary"
    model = family(model_name(training, adapter))
    if model is not None and model.vocab:
        return model.vocab, f"the vocabulary of {model.name}"
    return None, "the vocabulary is not known"
