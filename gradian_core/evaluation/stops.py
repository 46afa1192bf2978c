"""Where an answer ends, and how long prompt and answer may be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradian_core.data.template import chat_template

__all__ = ["UNLIMITED", "context_limit", "stop_token_ids"]

UNLIMITED = 1 << 30
"""Sequence length that stands for no limit."""


def stop_token_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Return every token that ends an answer, ascending.

    That is the union of what the generation config, the model's config and the tokenizer call
    end of sequence, and of the token that the chat template writes after an answer: a base
    model's ``eos_token`` is often not the token that ends a turn.
    """
    found: set[int] = set()
    sources = (
        getattr(getattr(model, "generation_config", None), "eos_token_id", None),
        getattr(model.config.get_text_config(), "eos_token_id", None),
        getattr(tokenizer, "eos_token_id", None),
        _end_of_turn(tokenizer),
    )
    for source in sources:
        if source is not None:
            found.update(int(i) for i in (source if isinstance(source, Iterable) else [source]))
    return tuple(sorted(found))


def context_limit(model: Any) -> int | None:
    """Return how many tokens the model was built for; None if it has no such limit."""
    limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return int(limit) if limit else None


def _end_of_turn(tokenizer: Any) -> int | None:
    """Ask the chat template itself: the token that it writes after an assistant's words."""
    template = chat_template(tokenizer)
    if template is None:
        return None
    closing = template.closing.lstrip()
    fitting = [token for token in template.added_tokens if closing.startswith(token)]
    return int(tokenizer.convert_tokens_to_ids(max(fitting, key=len))) if fitting else None
