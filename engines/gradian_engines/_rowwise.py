"""Baselines that know no query: loss, lossdrop, gradnorm and random."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from gradian_core.protocols import AttributionTask

__all__ = ["GradNorm", "GradNormSettings", "Loss", "LossDrop", "LossDropSettings", "Random"]

Matrix = NDArray[np.float64]


class LossDropSettings(BaseModel):
    """Settings of lossdrop."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    batch_size: int = Field(8, ge=1)
    """Most rows in a forward pass."""


class GradNormSettings(BaseModel):
    """Settings of gradnorm."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    alpha: float = Field(1.0, ge=0, le=1)
    """Scale of the adapter at which gradients are taken."""


class Loss:
    """Implements :class:`gradian_core.protocols.TaskEngine`: a hard row does harm."""

    def score(self, task: AttributionTask) -> Matrix:
        """Return minus each row's mean loss in nats, for each query alike."""
        return _for_each_query(task, -task.gradients().losses)

    def caveats(self, task: AttributionTask) -> Sequence[str]:  # noqa: ARG002
        """Say what it is not."""
        what = (
            "loss is a baseline that looks at no query: it finds rows that the fine-tuned "
            "model still gets wrong, whatever they are about."
        )
        return (what,)


class LossDrop:
    """Implements :class:`gradian_core.protocols.TaskEngine`: what was learned most does harm."""

    def __init__(self, settings: LossDropSettings) -> None:
        self._settings = settings

    def score(self, task: AttributionTask) -> Matrix:
        """Return loss under the tuned minus loss under the base model, for each query alike."""
        from gradian_core.evaluation.likelihood import sequence_logprobs

        tuned = task.gradients().losses
        loaded = task.fresh_model()
        with (
            task.progress.task("lossdrop: losses of the base model", task.n) as shown,
            loaded.base() as model,
        ):
            done = 0

            def report(now: int, _: int) -> None:
                nonlocal done
                shown.advance(now - done)
                done = now

            found = sequence_logprobs(
                model,
                task.tokens,
                batch_rows=self._settings.batch_size,
                pad_token_id=loaded.pad_token_id,
                device=loaded.device,
                progress=report,
            )
        base = -np.array([values.mean() for values in found])
        return _for_each_query(task, tuned - base)

    def caveats(self, task: AttributionTask) -> Sequence[str]:  # noqa: ARG002
        """Say what it is not."""
        what = (
            "lossdrop is a baseline that looks at no query: it finds rows that the "
            "fine-tune learned most, whatever they are about."
        )
        return (what,)


class GradNorm:
    """Implements :class:`gradian_core.protocols.TaskEngine`: a long gradient does harm."""

    def __init__(self, settings: GradNormSettings) -> None:
        self._settings = settings

    def score(self, task: AttributionTask) -> Matrix:
        """Return minus the norm of each row's gradient, for each query alike."""
        norms = task.gradients(adapter_scale=self._settings.alpha).row_norms
        return _for_each_query(task, -norms)

    def caveats(self, task: AttributionTask) -> Sequence[str]:  # noqa: ARG002
        """Say what it is not."""
        what = (
            "gradnorm is a baseline that looks at no query: it finds rows with long "
            "gradients, whatever they are about."
        )
        return (what,)


class Random:
    """Implements :class:`gradian_core.protocols.TaskEngine`: what a guess is worth."""

    def score(self, task: AttributionTask) -> Matrix:
        """Return a draw from (-1, 0] for each row, for each query alike.

        It is drawn by seed and content, so that a row keeps it wherever it stands, and copies
        of a row share it as they do under every other engine.
        """
        drawn = np.array([_draw(task.seed, row.id.partition("-")[0]) for row in task.examples])
        return _for_each_query(task, -drawn)

    def caveats(self, task: AttributionTask) -> Sequence[str]:  # noqa: ARG002
        """Say what it is not."""
        return ("random is a baseline: its ranking means nothing.",)


def _draw(seed: int, content: str) -> float:
    digest = hashlib.sha256(f"{seed} {content}".encode()).digest()
    # 53 bits are what a float64 in [0, 1) holds
    return (int.from_bytes(digest[:8], "big") >> 11) / 2.0**53


def _for_each_query(task: AttributionTask, values: NDArray[np.floating[Any]]) -> Matrix:
    return np.tile(np.asarray(values, dtype=np.float64), (task.q, 1))
