"""A loaded base model with its adapter: one set of weights for base and tuned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["LoadedModel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """Model, tokenizer and adapter, ready to be measured and differentiated.

    Parameters
    ----------
    model
        The ``peft.PeftModel`` in eval mode (or the bare base model where there is no adapter).
    tokenizer
        Its tokenizer.
    device
        ``torch.device`` on which it lies.
    adapter
        Name of the active adapter, None without one.
    notes
        What was guessed or skipped while loading, as sentences for the report.
    """

    model: Any
    tokenizer: Any
    device: Any
    adapter: str | None
    notes: tuple[str, ...] = ()

    @contextmanager
    def base(self) -> Iterator[Any]:
        """Give the model with its adapter switched off."""
        if self.adapter is None:
            yield self.model
            return
        with self.model.disable_adapter():
            yield self.model

    @property
    def pad_token_id(self) -> int:
        """A token to pad with; masked, so any will do."""
        for name in ("pad_token_id", "eos_token_id", "unk_token_id"):
            value = getattr(self.tokenizer, name, None)
            if value is not None:
                return int(value)
        return 0
