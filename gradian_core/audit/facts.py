"""The facts that audit checks ask for by parameter name.

Each is computed once, in as few passes over the data as possible, as arrays where there are many
rows. A check that cannot judge raises :class:`NotAssessed`; that is an answer of its own and not
silence.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gradian_core.data.example import Example
from gradian_core.data.rejected import NOTHING, Rejected
from gradian_core.data.tokens import TokenizedRows

__all__ = [
    "ExampleFacts",
    "LogFacts",
    "NotAssessed",
    "Style",
    "TokenFacts",
    "TokenizerFacts",
]


class NotAssessed(Exception):  # noqa: N818 - an answer, not an error
    """Raised by a check that cannot judge here; the message says why, as a sentence."""


class Rows(Protocol):
    """Rows that are parsed when they are asked for; to see many, iterate: it is far cheaper."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Example: ...
    def __iter__(self) -> Iterator[Example]: ...


class Style(enum.IntFlag):
    """What the last answer looks like, and what stands anywhere in the row."""

    JSON = 1
    """It starts and ends as a JSON object or array."""
    FENCED = 2
    """It starts with a code fence."""
    LABELLED = 4
    """It starts with a short label and a colon, such as ``Answer:``."""
    LEADING_SPACE = 8
    """White space stands before it."""
    TRAILING_SPACE = 16
    """White space stands after it."""
    ONE_CHARACTER = 32
    """One character, repeated at least four times."""
    PLACEHOLDER = 64
    """``{{name}}`` or the like stands somewhere in the row."""
    EMPTY_TURN = 128
    """An assistant turn says nothing: no text, no tool call, no reasoning."""
    REASONING = 256
    """An assistant turn carries reasoning, in ``<think>`` tags or under a key of its own."""
    BROKEN_TURNS = 512
    """User and assistant do not take turns, the user first and the assistant last."""
    INST = 1024
    """``[INST]`` stands in the text: Llama-2 and Mistral markup."""
    CHATML = 2048
    """``<|im_start|>`` stands in the text: ChatML markup."""
    HEADER = 4096
    """``<|start_header_id|>`` stands in the text: Llama-3 markup."""
    GEMMA = 8192
    """``<start_of_turn>`` stands in the text: Gemma markup."""
    ROLE_TAGS = 16384
    """``<|assistant|>`` stands in the text: Zephyr, Phi and GLM markup."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExampleFacts:
    """Rows of a data set, seen in one streaming pass.

    Parameters
    ----------
    rows
        Access to single rows, for evidence.
    ids
        Example ids.
    content
        ``(n,)`` uint64 hash of the whole row after NFC and white space folding.
    question
        ``(n,)`` uint64 hash of everything before the last answer (system, history, prompt,
        tools), folded likewise; of the whole row where there is no answer.
    answer
        ``(n,)`` uint64 hash of the last answer and its tool calls, folded likewise; 0 where there
        is none. :data:`gradian_core.audit.hashing.EMPTY` is an answer of white space.
    asked
        ``(n,)`` uint64 hash of the last turn before the last answer, folded likewise; 0 where
        there is none.
    styles
        ``(n,)`` uint16: :class:`Style` flags.
    shapes
        ``(n,)`` uint8 index into ``shape_names``.
    shape_names
        Names of the row shapes that occur (``messages``, ``prompt+completion``, …).
    roles
        How often each role name occurs, as written in the file.
    prompt_chars, answer_chars
        ``(n,)`` int32 lengths in characters.
    turns
        ``(n,)`` int16 number of turns.
    has_tool_calls
        ``(n,)`` bool: the last answer is a tool call.
    scanned
        Rows that were looked at; fewer than all only where a sample was asked for.
    rejected
        Rows that cannot be read; they are not among the others.
    """

    rows: Rows
    ids: Sequence[str]
    content: NDArray[np.uint64]
    question: NDArray[np.uint64]
    answer: NDArray[np.uint64]
    asked: NDArray[np.uint64]
    styles: NDArray[np.uint16]
    shapes: NDArray[np.uint8]
    shape_names: tuple[str, ...]
    roles: Mapping[str, int]
    prompt_chars: NDArray[np.int32]
    answer_chars: NDArray[np.int32]
    turns: NDArray[np.int16]
    has_tool_calls: NDArray[np.bool_]
    scanned: int
    rejected: Rejected = NOTHING

    def __len__(self) -> int:
        return len(self.content)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenFacts:
    """The rows as tokens, under the sequence length of the training run.

    Parameters
    ----------
    tokens
        Truncated at ``max_seq_length``; full lengths are kept in it.
    max_seq_length
        The effective limit, None where there is none.
    limit_source
        Where that limit comes from, as words.
    problems
        Row position -> why its targets could not be found.
    ends
        ``(n,)`` int32: last supervised token of each *untruncated* row, -1 without any.
    answer_cut
        ``(n,)`` bool: truncation removed supervised tokens.
    notes
        What was skipped or guessed while tokenising, as sentences.
    sampled
        Positions of the rows that were tokenised, None for all; ``tokens`` holds these only.
    """

    tokens: TokenizedRows
    max_seq_length: int | None
    limit_source: str
    problems: Mapping[int, str]
    ends: NDArray[np.int32]
    answer_cut: NDArray[np.bool_]
    sampled: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenizerFacts:
    """What there is to know of a tokenizer.

    Parameters
    ----------
    name
        As given.
    tokenizer
        The transformers tokenizer itself.
    chat_template
        Its source, None without one.
    bos, eos, pad
        ``(text, id)``, or None.
    end_tokens
        Ids that end an answer: eos, the template's end of turn, generation_config's.
    model_max_length
        Its limit in tokens, None where it states none.
    vocab_size
        Number of tokens, added ones included.
    end_of_turn
        ``(text, id)`` of the token that the chat template writes after an answer, or None.
    generation_eos
        ``eos_token_id`` of ``generation_config.json``; empty where there is none.
    base_model
        What the user named as the base model, None if only a tokenizer was named or found.
    model_vocab_size
        Rows of the base model's embedding (``vocab_size`` of its ``config.json``), None where
        that is not at hand.
    """

    name: str
    tokenizer: Any
    chat_template: str | None
    bos: tuple[str, int] | None
    eos: tuple[str, int] | None
    pad: tuple[str, int] | None
    end_tokens: frozenset[int]
    model_max_length: int | None
    vocab_size: int
    end_of_turn: tuple[str, int] | None = None
    generation_eos: frozenset[int] = frozenset()
    base_model: str | None = None
    model_vocab_size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogFacts:
    """A trainer's log as arrays, oldest first; NaN where a value was not logged.

    Parameters
    ----------
    step, epoch, loss, grad_norm, learning_rate
        ``(k,)`` float64, one entry for each training record. A loss that was logged as NaN or
        infinite is marked in ``loss_bad``.
    loss_bad, grad_bad
        ``(k,)`` bool: logged, but not finite.
    eval_step, eval_epoch, eval_loss
        ``(m,)`` float64 of evaluations (the main one, if there are several).
    eval_bad
        ``(m,)`` bool: logged, but not finite.
    global_step, max_steps
        Steps taken and planned, None if unknown.
    epochs_done
        Epochs that were done as the trainer recorded them, None if it did not.
    finished
        Whether the trainer recorded that it came to its end, None if it says nothing.
    train_loss
        Mean over the run from the closing record, None without one.
    extra
        Values of the closing record and totals, by name.
    eval_rows
        Rows of the eval set, from its run time and throughput; None where those were not logged.
    """

    step: NDArray[np.float64]
    epoch: NDArray[np.float64]
    loss: NDArray[np.float64]
    loss_bad: NDArray[np.bool_]
    grad_norm: NDArray[np.float64]
    grad_bad: NDArray[np.bool_]
    learning_rate: NDArray[np.float64]
    eval_step: NDArray[np.float64]
    eval_epoch: NDArray[np.float64]
    eval_loss: NDArray[np.float64]
    eval_bad: NDArray[np.bool_]
    global_step: int | None = None
    max_steps: int | None = None
    epochs_done: float | None = None
    finished: bool | None = None
    train_loss: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    eval_rows: int | None = None
