"""How often gradients were clipped."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gradian_checks._read import known, number
from gradian_checks._steps import warmup_steps
from gradian_core.audit.facts import LogFacts
from gradian_core.runs.artifact import TrainingConfig

__all__ = ["clip_norm", "clipped_share", "settled_norms"]

_DEFAULT = 1.0
_TRAINER = frozenset({"transformers", "trl", "unsloth", "axolotl", "llamafactory"})


def clip_norm(training: TrainingConfig | None) -> float | None:
    """Return the norm that gradients are clipped to, None where they are not or it is unknown."""
    limit = number(training, "max_grad_norm")
    if limit is not None:
        return limit if 0 < limit < math.inf else None
    if training is None or known(training, "max_grad_norm"):
        return None
    return _DEFAULT if training.tool in _TRAINER else None


def settled_norms(log: LogFacts, training: TrainingConfig | None) -> NDArray[np.float64]:
    """Return the finite gradient norms after the warmup."""
    finite = np.isfinite(log.grad_norm)
    step, norm = log.step[finite], log.grad_norm[finite]
    warmup = warmup_steps(training, log.max_steps)
    if warmup is not None and warmup >= 1:
        return norm[~(step <= warmup)]
    rate = log.learning_rate[finite]
    if np.isfinite(rate).all() and len(rate) and rate.max() > rate[0]:
        return norm[int(rate.argmax()) :]
    return norm


def clipped_share(log: LogFacts, training: TrainingConfig | None) -> float | None:
    """Return the share of logged norms above the clip norm after warmup, None if unknown."""
    limit = clip_norm(training)
    norm = settled_norms(log, training)
    if limit is None or len(norm) < 10:
        return None
    return float((norm > limit).mean())
