"""The baseline repsim: similarity of representations (Hanawa et al., ICLR 2021).

Cosine between the base model's last hidden states of row and item: of the token that ends the
prompt (what the model is about to answer), or the mean over the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from gradian_core.data.tokens import TokenizedRows
from gradian_core.errors import CannotRunError
from gradian_core.protocols import AttributionTask

__all__ = ["RepSim", "RepSimSettings"]

Matrix = NDArray[np.float64]

_BATCH_TOKENS = 4096


class RepSimSettings(BaseModel):
    """Settings of repsim."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    of: Literal["prompt", "answer"] = "prompt"
    """``prompt``: the state of its last token; ``answer``: the mean over the answer's tokens."""
    batch_size: int = Field(8, ge=1)
    """Most rows in a forward pass."""


class RepSim:
    """Implements :class:`gradian_core.protocols.TaskEngine`."""

    def __init__(self, settings: RepSimSettings) -> None:
        self._settings = settings

    def score(self, task: AttributionTask) -> Matrix:
        """Return ``(q, n)`` minus the cosines: the likest row is said to have done the harm."""
        queries = task.query_rows("target")
        rows, places = task.tokens, _first_rows(queries.weights)
        loaded = task.fresh_model()
        with task.progress.task("repsim: hidden states", task.n + len(places)) as shown:
            found = [
                self._states(loaded, tokens, task, shown)
                for tokens in (queries.tokens.take(places), rows)
            ]
        return -np.asarray(found[0] @ found[1].T)

    def caveats(self, task: AttributionTask) -> Sequence[str]:  # noqa: ARG002
        """Say what it is not."""
        what = (
            "repsim is a baseline that knows the base model alone: it finds rows that look "
            "to it like what was lost, guilty or not."
        )
        return (what,)

    def _states(
        self, loaded: Any, tokens: TokenizedRows, task: AttributionTask, shown: Any
    ) -> Matrix:
        """Return ``(m, d)`` float64 states of unit length."""
        import torch

        from gradian_core.gradients.batching import plan_batches
        from gradian_core.gradients.collate import collate

        picked = [self._pick(tokens.row(row)[1]) for row in range(len(tokens))]
        bare = sum(mask is None for mask in picked)
        if bare:
            task.note(
                f"repsim: {bare} rows have no prompt; the state of their last token stands in."
            )
        states: list[Matrix] = [np.empty(0)] * len(tokens)
        order = np.argsort(-tokens.lengths, kind="stable")
        with loaded.base() as model, torch.inference_mode():
            body = _body(model)
            for part in plan_batches(
                tokens.lengths[order], self._settings.batch_size, _BATCH_TOKENS
            ):
                places = order[part].tolist()
                batch = collate(
                    tokens, places, pad_token_id=loaded.pad_token_id, device=loaded.device
                )
                hidden = body(input_ids=batch.input_ids, attention_mask=batch.attention_mask)
                for i, place in enumerate(places):
                    chosen = picked[place]
                    length = int(tokens.lengths[place])
                    kept = np.arange(length) == length - 1 if chosen is None else chosen
                    taken = hidden.last_hidden_state[i, :length][torch.as_tensor(kept)]
                    states[place] = taken.double().mean(dim=0).cpu().numpy()
                shown.advance(len(places))
        found = np.stack(states)
        if not np.isfinite(found).all():
            raise CannotRunError(
                "repsim: hidden states of the base model are NaN or infinite.",
                hint="Set dtype to bfloat16 or float32.",
            )
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.maximum(lengths, 1e-300), dtype=np.float64)

    def _pick(self, supervised: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """Return the tokens whose states are averaged; None for a row without a prompt."""
        if self._settings.of == "answer":
            return supervised
        # the last answer is the one that the prompt, all turns before it, asks for
        starts = np.flatnonzero(supervised & ~np.concatenate(([False], supervised[:-1])))
        end = int(starts[-1]) - 1
        return None if end < 1 else np.arange(len(supervised)) == end


def _first_rows(weights: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Return the first token row of each query; under target they differ in the answer alone."""
    return np.asarray((weights != 0).argmax(axis=1), dtype=np.int64)


def _body(model: Any) -> Any:
    """Return the model without its output layer: logits of every token would fill the memory."""
    causal = model.get_base_model() if hasattr(model, "get_base_model") else model
    body = causal.base_model
    if body is causal:
        raise CannotRunError(f"repsim: {type(causal).__name__} does not give its hidden states.")
    return body
