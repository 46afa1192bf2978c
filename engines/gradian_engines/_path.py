r"""The path engine: similarity of gradients at several scales of the adapter.

At the adapter itself the rows that it has learned have hardly a gradient left, and with it goes
what they did. Scaled down, they have one again. With :math:`H_a` the scores at scale *a*::

    H = mean over a of  H_a / mean |H_a|

Forms of the score of a row gradient g and a query gradient q, over all blocks together::

    dot      <q, g>
    cosine   <q, g> / (|q| |g|)
    adam     <q / d, g> / |g|              d = sqrt(mean_i g_i^2) + 0.1 mean(d), by component
    acos     <q / d, g / d> / (|q / d| |g / d|)

The diagonal *d* stands for Adam's second moment; LESS (Xia et al., ICML 2024, arXiv 2402.04333)
takes that from the optimizer's state. Its damping is relative to each block's own mean, so that a
block is worked off at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from gradian_core.protocols import AttributionTask, BlockGradients, GradientPoint
from gradian_engines._dot import divide, dot

__all__ = ["Path", "PathSettings"]

Matrix = NDArray[np.float64]
Form = Literal["dot", "cosine", "adam", "acos"]

_DAMPING = 0.1


class PathSettings(BaseModel):
    """Settings of path."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    alphas: tuple[float, ...] = Field((0.25, 0.5, 0.75, 1.0), min_length=1, max_length=64)
    """Scales of the adapter, each an index of its own; ``[0.5]`` is the fast choice."""
    form: Form = "acos"
    """``dot``, ``cosine``, ``adam`` (preconditioned query, unit rows) or ``acos``
    (preconditioned cosine)."""
    signal: str | None = None
    """Query signal in place of ``evaluation.query_signal``."""

    @field_validator("alphas")
    @classmethod
    def _scales(cls, alphas: tuple[float, ...]) -> tuple[float, ...]:
        if not all(0.0 <= alpha <= 1.0 for alpha in alphas):
            raise ValueError("scales lie between 0 and 1")
        if len(set(alphas)) < len(alphas):
            raise ValueError("a scale is there twice")
        return alphas


class Path:
    """Implements :class:`gradian_core.protocols.TaskEngine`."""

    def __init__(self, settings: PathSettings) -> None:
        self._settings = settings
        self._projected = False

    def score(self, task: AttributionTask) -> Matrix:
        """Return the ``(q, n)`` scores, of mean size 1 at each scale before they are averaged."""
        total = np.zeros((task.q, task.n))
        for alpha in self._settings.alphas:
            point = task.gradients(signal=self._settings.signal, adapter_scale=alpha)
            found = self._at(point)
            size = float(np.abs(found).mean())
            if size == 0.0:
                task.note(f"path: at scale {alpha:g} every score is zero; it counts for nothing.")
                continue
            total += found / size
        return total / len(self._settings.alphas)

    def _at(self, point: GradientPoint) -> Matrix:
        form = self._settings.form
        total: Matrix | float = 0.0
        rows, queries = np.zeros(len(point.row_norms)), np.zeros(len(point.context.query_norms))
        for block, vectors in point.blocks():
            if form in {"dot", "cosine"}:
                total = total + dot(block, vectors)
                continue
            self._projected |= block.dim < block.exact_dim
            weights = _inverse_diagonal(block)
            if form == "adam":
                total = total + dot(block, vectors * weights)
                continue
            weighed = vectors * weights
            found, squares = _weighed(block, weighed, weights)
            total, rows = total + found, rows + squares
            queries += np.einsum("qd,qd->q", weighed, weighed)
        scores = np.asarray(total, dtype=np.float64)
        if form == "dot":
            return scores
        if form == "acos":
            return divide(scores, np.sqrt(queries), np.sqrt(rows))
        query_norms = np.ones(len(scores)) if form == "adam" else point.context.query_norms
        return divide(scores, query_norms, point.row_norms)

    def caveats(self, task: AttributionTask) -> Sequence[str]:  # noqa: ARG002
        """Say what the scores are not."""
        what = (
            "path compares directions of gradients along the way from the base model to the "
            "adapter: its scores have no unit, and it knows no interaction between parameters."
        )
        projected = (
            "The index is projected, so path divides mixtures of components by their common "
            "size: its preconditioner is an approximation."
        )
        return (what, projected) if self._projected else (what,)


def _inverse_diagonal(block: BlockGradients) -> Matrix:
    """Return ``(dim,)`` 1 / d; zeros where every gradient of the block is zero."""
    squares = np.zeros(block.dim)
    for _, gradients in block.chunks():
        g = gradients.astype(np.float64, copy=False)
        squares += np.einsum("nd,nd->d", g, g)
    d = np.sqrt(squares / block.n)
    d += _DAMPING * d.mean()
    return np.divide(1.0, d, out=np.zeros_like(d), where=d > 0)


def _weighed(block: BlockGradients, queries: Matrix, weights: Matrix) -> tuple[Matrix, Matrix]:
    """Return products with ``g * weights`` and its squared norms, in one pass."""
    scores, squares = np.empty((len(queries), block.n)), np.empty(block.n)
    for rows, gradients in block.chunks():
        g = gradients.astype(np.float64, copy=False) * weights
        scores[:, rows] = queries @ g.T
        squares[rows] = np.einsum("nd,nd->n", g, g)
    return scores, squares
