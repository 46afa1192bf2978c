"""Generated answers: the same ones whatever the batch, the order or the checkpoint's defaults."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import numpy as np
import torch

from gradian_core.errors import CannotRunError, InputError
from gradian_core.evaluation.stops import context_limit, stop_token_ids

__all__ = ["Generation", "generate"]


@dataclass(frozen=True, slots=True)
class Generation:
    """One generated answer.

    Parameters
    ----------
    text
        Its text without special tokens; white space is as generated.
    complete
        False where it was cut off at the cap on new tokens.
    """

    text: str
    complete: bool


def generate(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    batch_size: int,
    pad_token_id: int,
    greedy: bool = True,
    seed: int = 0,
    device: Any = "cpu",
    names: Sequence[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Generation]:
    """Continue each prompt until the model ends its answer.

    Greedy decoding is the plain argmax: nothing that a checkpoint's ``generation_config.json``
    asks for (temperature, penalties, forced or suppressed tokens) is applied. Otherwise each
    answer is sampled from the model's own distribution, at temperature 1 over the whole
    vocabulary. Its random numbers depend on the seed and on the prompt alone, so that neither
    batches nor order matter, base and tuned model draw alike, and equal prompts get equal answers.

    Parameters
    ----------
    model
        A causal language model in eval mode.
    tokenizer
        Its tokenizer.
    prompts
        Token ids, not padded.
    max_new_tokens
        Most tokens of an answer.
    batch_size
        Prompts at a time. In float32 it does not change an answer; in half precision it can,
        through rounding.
    pad_token_id
        Any valid token; it is masked.
    greedy, seed
        See above.
    device
        Where the model lies.
    names
        Name of each prompt for messages.
    progress
        Called after each batch with the number of prompts done and of all.

    Returns
    -------
    list of Generation
        In the order of the prompts.

    Raises
    ------
    InputError
        If a prompt is empty, or does not fit into the model's context with its answer.
    CannotRunError
        If memory does not suffice or the model gives NaN.
    """
    _check(model, prompts, max_new_tokens, names)
    stops = stop_token_ids(model, tokenizer)
    settings = {
        "do_sample": False,
        "num_beams": 1,
        "max_new_tokens": max_new_tokens,
        "eos_token_id": list(stops) or None,
        "pad_token_id": pad_token_id,
    }
    answers: dict[int, Generation] = {}
    with _plain_decoding(model), torch.no_grad():
        for chosen in _batches(prompts, batch_size, padded=model.dtype != torch.float64):
            batch = [prompts[i] for i in chosen]
            sampler = None if greedy else _Gumbel(batch, seed)
            for i, new in zip(
                chosen, _decode(model, batch, settings, sampler, device), strict=True
            ):
                answers[i] = _read(new, stops, tokenizer)
            if progress is not None:
                progress(len(answers), len(prompts))
    return [answers[i] for i in range(len(prompts))]


def _batches(
    prompts: Sequence[Sequence[int]], size: int, *, padded: bool
) -> Iterator[Sequence[int]]:
    """Positions of prompts of like length; of equal length where padding is not allowed.

    Eager attention gives NaN at padding on the left in float64: transformers takes the softmax
    in float32, in which the mask of a float64 model is minus infinity.
    """
    # longest first: a batch that does not fit into memory fails at once, not after an hour
    order = sorted(range(len(prompts)), key=lambda i: -len(prompts[i]))
    for _, group in groupby(order, key=lambda i: 0 if padded else len(prompts[i])):
        yield from _batched(group, size)


def _batched(items: Iterable[int], size: int) -> Iterator[list[int]]:
    """``itertools.batched`` of Python 3.12."""
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part


def _check(
    model: Any, prompts: Sequence[Sequence[int]], new: int, names: Sequence[str] | None
) -> None:
    limit = context_limit(model)
    for i, prompt in enumerate(prompts):
        name = names[i] if names else f"prompt {i}"
        if not len(prompt):
            raise InputError(f"{name} has an empty prompt: there is nothing to continue.")
        if limit is not None and len(prompt) + new > limit:
            raise InputError(
                f"{name} has a prompt of {len(prompt)} tokens; with {new} tokens for the answer "
                f"that is more than the {limit} tokens of the model's context.",
                hint="Shorten or remove it, or lower evaluation.max_new_tokens.",
            )


@contextmanager
def _plain_decoding(model: Any) -> Iterator[None]:
    """Hide the checkpoint's generation config: transformers fills what we leave unset from it."""
    from transformers import GenerationConfig

    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    kept = base.generation_config
    base.generation_config = GenerationConfig()
    try:
        yield
    finally:
        base.generation_config = kept


def _decode(
    model: Any,
    prompts: Sequence[Sequence[int]],
    settings: dict[str, Any],
    sampler: _Gumbel | None,
    device: Any,
) -> list[list[int]]:
    """Return the new tokens of each prompt, as far as the slowest of the batch went."""
    from transformers import GenerationConfig, LogitsProcessorList

    width = max(len(prompt) for prompt in prompts)
    input_ids = torch.full((len(prompts), width), settings["pad_token_id"], dtype=torch.int64)
    attention_mask = torch.zeros_like(input_ids)
    for row, prompt in enumerate(prompts):
        # on the left: every answer then starts in the same column
        input_ids[row, width - len(prompt) :] = torch.as_tensor(prompt, dtype=torch.int64)
        attention_mask[row, width - len(prompt) :] = 1
    processors: list[Any] = [_refuse_nan] if sampler is None else [_refuse_nan, sampler]
    try:
        output = model.generate(
            input_ids=input_ids.to(device),
            attention_mask=attention_mask.to(device),
            generation_config=GenerationConfig(**settings),
            logits_processor=LogitsProcessorList(processors),
        )
    except torch.OutOfMemoryError as error:
        raise CannotRunError(
            f"Not enough memory on {device} to answer {len(prompts)} prompts of up to {width} "
            "tokens at a time.",
            hint="Lower evaluation.batch_size.",
        ) from error
    new: list[list[int]] = output[:, width:].tolist()
    return new


def _read(new: list[int], stops: tuple[int, ...], tokenizer: Any) -> Generation:
    end = next((at for at, token in enumerate(new) if token in stops), None)
    text = tokenizer.decode(new[:end], skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return Generation(text, complete=end is not None)


def _refuse_nan(_input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    if torch.isnan(scores).any():
        raise CannotRunError(
            "The model's logits are NaN, so its answers mean nothing.",
            hint="Set dtype to bfloat16 or float32; if it already is, the weights are damaged.",
        )
    return scores


class _Gumbel:
    """Turns argmax into sampling: the argmax of logits plus Gumbel noise is a sample of softmax.

    Parameters
    ----------
    prompts
        Prompts of the batch; with the seed, each seeds its own noise.
    seed
        Seed of the run.
    """

    def __init__(self, prompts: Sequence[Sequence[int]], seed: int) -> None:
        self._streams = [
            np.random.default_rng(
                list(hashlib.sha256(f"{seed}:{[*map(int, p)]}".encode()).digest())
            )
            for p in prompts
        ]

    def __call__(self, _input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        noise = np.stack([stream.gumbel(size=scores.shape[1]) for stream in self._streams])
        return scores + torch.from_numpy(noise).to(scores)
