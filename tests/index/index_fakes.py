"""A convex model small enough to check by hand, and data for it.

The logits of the next token are ``W[previous] + b``. The loss is convex in (W, b), and its
gradient has a closed form that needs no autograd.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from gradian_core.data.tokens import Supervision, TokenizedRows
from gradian_core.gradients.types import Batch, BatchGradients, Block
from gradian_core.index.address import index_id, library_versions, tokens_digest
from gradian_core.index.build import build
from gradian_core.index.manifest import GradientSpec, IndexInputs

VOCAB = 12
HALF = VOCAB // 2
BLOCKS = (
    Block("lower", ("w.lower",), ((HALF, VOCAB),)),
    Block("upper", ("w.upper",), ((VOCAB - HALF, VOCAB),)),
    Block("bias", ("b",), ((VOCAB,),)),
)


class BigramCapture:
    """Closed-form per-example gradients; counts what it is asked to do."""

    def __init__(self, seed: int = 0, dtype: torch.dtype = torch.float64) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.w = torch.randn(VOCAB, VOCAB, generator=generator, dtype=torch.float64)
        self.b = torch.randn(VOCAB, generator=generator, dtype=torch.float64)
        self.dtype = dtype
        self.blocks = BLOCKS
        self.factor = 1.0
        self.rows = 0
        self.shapes: list[tuple[int, int]] = []

    def __call__(self, batch: Batch) -> BatchGradients:
        self.shapes.append(tuple(batch.input_ids.shape))
        self.rows += len(batch.input_ids)
        found = [self._row(i, m) for i, m in zip(batch.input_ids, batch.supervised, strict=True)]
        grads = {name: torch.stack([one[1][name] for one in found]) for name in found[0][1]}
        return BatchGradients(
            losses=torch.stack([one[0] for one in found]),
            blocks={name: (self.factor * value).to(self.dtype) for name, value in grads.items()},
        )

    def _row(self, ids, mask):
        at = torch.nonzero(mask).flatten()
        assert (at > 0).all()
        previous, wanted = ids[at - 1], ids[at]
        logp = torch.log_softmax(self.w[previous] + self.b, dim=1)
        error = logp.exp()
        error[torch.arange(len(at)), wanted] -= 1.0
        error = error / len(at)
        w = torch.zeros_like(self.w).index_add_(0, previous, error)
        loss = -logp[torch.arange(len(at)), wanted].mean()
        return loss, {
            "lower": w[:HALF].flatten(),
            "upper": w[HALF:].flatten(),
            "bias": error.sum(0),
        }


def make_tokens(n: int, *, seed: int = 0, unsupervised: tuple[int, ...] = ()) -> TokenizedRows:
    """Random rows of 3 to 14 tokens; the second half of each is supervised."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, 15, n)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    supervised = np.zeros(offsets[-1], dtype=np.bool_)
    for row, length in enumerate(lengths):
        if row not in unsupervised:
            supervised[offsets[row] + length // 2 : offsets[row + 1]] = True
    counts = np.add.reduceat(supervised, offsets[:-1], dtype=np.int32)
    return TokenizedRows(
        ids=tuple(f"{rng.integers(16**12):012x}-{row}" for row in range(n)),
        rows=np.arange(n, dtype=np.int64),
        input_ids=rng.integers(0, VOCAB, offsets[-1]).astype(np.int32),
        supervised=supervised,
        offsets=offsets,
        full_lengths=lengths.astype(np.int32),
        full_supervised=counts,
        supervision=np.full(n, Supervision.MARKERS, dtype=np.uint8),
    )


def make_inputs(tokens: TokenizedRows, **spec) -> IndexInputs:
    return IndexInputs(
        adapter="a" * 64,
        base="b" * 64,
        dataset=tokens_digest(tokens),
        tokenizer="t" * 64,
        spec=GradientSpec(max_seq_length=64, **spec),
        seed=1234,
        dtype="float64",
        device="cpu",
        attn_implementation="eager",
        libraries=library_versions(),
    )


def make_index(cache: Path, tokens: TokenizedRows, capture=None, *, spec=None, **settings):
    inputs = make_inputs(tokens, **(spec or {}))
    settings.setdefault("chunk_size", 8)
    return build(cache / index_id(inputs), inputs, tokens, capture or BigramCapture(), **settings)


def exact(tokens: TokenizedRows, capture: BigramCapture | None = None) -> np.ndarray:
    """All gradients in float64, in file order, zeros where nothing is supervised."""
    capture = capture or BigramCapture()
    out = np.zeros((len(tokens), sum(block.dim for block in BLOCKS)))
    for row in np.flatnonzero(tokens.supervised_counts > 0):
        ids, mask = tokens.row(row)
        _, parts = capture._row(torch.from_numpy(ids.astype(np.int64)), torch.from_numpy(mask))
        out[row] = np.concatenate([parts[block.name].numpy() for block in BLOCKS])
    return out


def mean_loss(tokens: TokenizedRows, row: int, w: np.ndarray, b: np.ndarray) -> float:
    """The loss once more, written on its own."""
    ids, mask = tokens.row(row)
    losses = []
    for t in np.flatnonzero(mask):
        logits = w[ids[t - 1]] + b
        top = logits.max()
        losses.append(top + np.log(np.exp(logits - top).sum()) - logits[ids[t]])
    return float(np.mean(losses))
