"""Gradients of the rows of one shard, in the form in which they are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.data.tokens import TokenizedRows
from gradian_core.errors import CannotRunError
from gradian_core.gradients.batching import plan_batches
from gradian_core.gradients.types import Batch, BatchGradients, Capture
from gradian_core.index.codec import decode, encode
from gradian_core.index.manifest import BlockEntry
from gradian_core.index.shards import RowFacts

if TYPE_CHECKING:
    import torch

__all__ = ["Collector"]

Projection = Callable[["torch.Tensor"], "torch.Tensor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    """Runs the capture over the rows of a shard.

    Parameters
    ----------
    tokenized
        The data set.
    capture
        Gives per-example gradients.
    blocks
        What is stored of each block.
    projections
        By block name; None keeps a block exactly.
    halves
        Whether to store float16.
    batch_size, batch_tokens
        Most rows, and most tokens with padding, in a batch.
    device
        Where the model lies.
    pad_token_id
        Token to pad with.
    """

    tokenized: TokenizedRows
    capture: Capture
    blocks: tuple[BlockEntry, ...]
    projections: Mapping[str, Projection | None]
    halves: bool
    batch_size: int
    batch_tokens: int
    device: Any
    pad_token_id: int

    def __call__(
        self, positions: NDArray[np.int64], on_batch: Callable[[int], None]
    ) -> tuple[RowFacts, dict[str, NDArray[Any]]]:
        """Compute one shard; the batches of a shard depend on no other shard.

        Parameters
        ----------
        positions
            Places of its rows in the data set.
        on_batch
            Called with the number of rows after each batch.

        Returns
        -------
        facts, blocks
            As :func:`gradian_core.index.shards.write_shard` takes them.

        Raises
        ------
        CannotRunError
            If a loss or gradient is not finite (the rows are named), or the GPU's memory is too
            small for a batch.
        """
        size = (len(positions), len(self.blocks))
        dtype = np.dtype("<f2" if self.halves else "<f4")
        stored: dict[str, NDArray[Any]] = {
            block.name: np.empty((len(positions), block.stored_dim), dtype) for block in self.blocks
        }
        facts = RowFacts(
            positions=positions,
            losses=np.empty(len(positions)),
            supervised_counts=self.tokenized.supervised_counts[positions],
            squared_norms=np.empty(size),
            scales=np.empty(size, np.float32) if self.halves else None,
        )
        lengths = self.tokenized.lengths[positions]
        for span in plan_batches(lengths, self.batch_size, self.batch_tokens):
            result = self._differentiate(positions[span])
            losses = result.losses.detach().double().cpu().numpy()
            self._refuse_non_finite("loss", positions[span], np.isfinite(losses))
            facts.losses[span] = losses
            for column, block in enumerate(self.blocks):
                values = self._values(result, block)
                finite: NDArray[np.bool_] = np.all(np.isfinite(values), axis=1)
                self._refuse_non_finite(f"gradient of {block.name}", positions[span], finite)
                if facts.scales is not None:
                    codes, scales = encode(values)
                    stored[block.name][span] = codes
                    facts.scales[span, column] = scales
                    values = decode(codes, scales)
                else:
                    stored[block.name][span] = values
                facts.squared_norms[span, column] = _squared_norms(values)
            on_batch(span.stop - span.start)
        return facts, stored

    def _differentiate(self, positions: NDArray[np.int64]) -> BatchGradients:
        import torch

        from gradian_core.gradients.collate import collate

        batch: Batch = collate(
            self.tokenized,
            positions.tolist(),
            pad_token_id=self.pad_token_id,
            device=self.device,
        )
        try:
            return self.capture(batch)
        except torch.cuda.OutOfMemoryError:
            rows, width = batch.input_ids.shape
            raise CannotRunError(
                f"The GPU's memory is too small for a batch of {rows} rows of {width} tokens.",
                hint="Lower grads.batch_size or grads.batch_tokens, then grads.max_seq_length.",
            ) from None

    def _values(self, result: BatchGradients, block: BlockEntry) -> NDArray[np.float32]:
        gradients = result.blocks[block.name].detach()
        project = self.projections[block.name]
        if project is not None:
            gradients = project(gradients)
        values: NDArray[np.float32] = gradients.float().cpu().numpy()
        return values

    def _refuse_non_finite(
        self, what: str, positions: NDArray[np.int64], finite: NDArray[np.bool_]
    ) -> None:
        if finite.all():
            return
        ids = [self.tokenized.ids[position] for position in positions[~finite]]
        raise CannotRunError(
            f"The {what} is not a finite number for {_listing(ids)}.",
            hint="Try dtype: float32; if that does not help, the adapter itself has diverged.",
        )


def _listing(ids: Sequence[str]) -> str:
    rest = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
    return f"row{'s' if len(ids) > 1 else ''} {', '.join(ids[:5])}{rest}"


def _squared_norms(values: NDArray[np.float32]) -> NDArray[np.float64]:
    # Row by row: a float64 copy of a whole batch would be larger than the batch.
    norms = np.empty(len(values))
    for row, gradient in enumerate(values):
        exact = gradient.astype(np.float64)
        norms[row] = exact @ exact
    return norms
