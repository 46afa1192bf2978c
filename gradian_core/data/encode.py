"""Examples to tokens and loss mask: the mask that training used and attribution uses."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.data.example import Example, Turn, example_id
from gradian_core.data.supervision import Supervise, render, render_prompt
from gradian_core.data.template import TemplateRefusal, chat_template
from gradian_core.data.tokenizing import RowTokenizer, Tokens
from gradian_core.data.tokens import Supervision, TokenizedRows
from gradian_core.errors import InputError

__all__ = ["Encoded", "encode", "prompt_ids", "with_answer"]

BATCH_ROWS = 512
_REASONS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoded:
    """Tokenised rows, with what could not be done.

    Parameters
    ----------
    tokens
        Every row; those without a target are in it too.
    problems
        Position of a row in ``tokens`` to the reason why targets of it are missing.
    notes
        What was skipped, degraded or guessed, as sentences for the report.
    """

    tokens: TokenizedRows
    problems: Mapping[int, str]
    notes: tuple[str, ...]

    @property
    def counts(self) -> dict[Supervision, int]:
        """Rows by the way in which their targets were found."""
        kinds, numbers = np.unique(self.tokens.supervision, return_counts=True)
        return {Supervision(int(k)): int(n) for k, n in zip(kinds, numbers, strict=True)}

    @property
    def truncated(self) -> NDArray[np.int64]:
        """Positions of the rows that were cut."""
        return np.flatnonzero(self.tokens.full_lengths > self.tokens.lengths)

    @property
    def unsupervised(self) -> NDArray[np.int64]:
        """Positions of the rows without a target; to be skipped, and reported."""
        return np.flatnonzero(self.tokens.supervised_counts == 0)


def encode(
    examples: Iterable[Example],
    tokenizer: Any,
    *,
    max_seq_length: int,
    supervise: Supervise = "all",
    lenient: bool = False,
) -> Encoded:
    """Tokenise examples and mark the targets of the loss.

    Parameters
    ----------
    examples
        A data set or any other examples; read once, as a stream.
    tokenizer
        A transformers tokenizer.
    max_seq_length
        Rows are cut on the right to this many tokens.
    supervise
        ``"all"``: every answer is a target, as in training. ``"last"``: the last answer only,
        and what follows it is left out; for eval items.
    lenient
        Return even where the chat template refuses every conversation; for an audit, which
        reports that with everything else.

    Returns
    -------
    Encoded
        See :mod:`gradian_core.data.supervision` for the rules.

    Raises
    ------
    InputError
        If the chat template refuses every conversation, unless ``lenient``.
    """
    template = chat_template(tokenizer)
    row_tokenizer = RowTokenizer(tokenizer)
    rows = _Rows(max_seq_length)
    refused = conversations = endless = begun = 0
    stream = iter(examples)
    while batch := list(islice(stream, BATCH_ROWS)):
        rendered = [render(example, template, supervise) for example in batch]
        for example, row, tokens in zip(batch, rendered, row_tokenizer.rows(rendered), strict=True):
            rows.add(example, row.how, tokens, row.notice)
            conversations += example.text is None
            refused += template is not None and example.text is None and row.plain
            endless += row.ends and row_tokenizer.eos is None
            begun += row.plain and row_tokenizer.begins(row.text)
    if refused and refused == conversations and not lenient:
        reason = Counter(rows.problems.values()).most_common(1)[0][0]
        raise InputError(
            f"All {refused} conversations are out of reach: {reason}.",
            hint="Use the tokenizer and chat template of the training run.",
        )
    notes = list(rows.notes())
    total = len(rows)
    if template is None and conversations:
        notes.append(
            f"The tokenizer has no chat template: the turns of {conversations} rows are joined as "
            "plain text, without roles, tools and tool calls."
        )
    if endless:
        notes.append(
            f"The tokenizer has no end-of-sequence token: {endless} of {total} rows end without."
        )
    if begun:
        notes.append(
            f"{begun} of {total} rows write the begin-of-sequence token that the tokenizer adds "
            "as well; it is there once."
        )
    if template is not None and template.writes_date:
        notes.append("The chat template can write today's date: tokens may change from day to day.")
    return Encoded(tokens=rows.tokenized(), problems=rows.problems, notes=tuple(notes))


def prompt_ids(example: Example, tokenizer: Any) -> list[int]:
    """Return the tokens to generate from: all before the last answer, and the generation prompt.

    They are what ``encode(..., supervise="last")`` puts before the answer, unless the template
    writes another generation prompt than it writes in front of a given answer, or a token
    reaches over the border.

    Raises
    ------
    InputError
        For raw text, which has no prompt, and if the chat template refuses the prompt.
    """
    if example.text is not None:
        raise _no_prompt(example)
    template = chat_template(tokenizer)
    try:
        text = render_prompt(example, template)
    except TemplateRefusal as refusal:
        raise InputError(
            f"The chat template refuses the prompt of row {example.row}: {refusal}."
        ) from None
    return RowTokenizer(tokenizer).ids(text, plain=template is None)


def with_answer(example: Example, answer: str) -> Example:
    """Return the example with the same prompt and another last answer.

    Raises
    ------
    InputError
        For raw text, which has no prompt.
    """
    if example.text is not None:
        raise _no_prompt(example)
    turns = (*example.prompt, Turn("assistant", answer))
    return Example(
        id=example_id(example.row, turns=turns, tools=example.tools),
        row=example.row,
        turns=turns,
        tools=example.tools,
        cluster=example.cluster,
    )


def _no_prompt(example: Example) -> InputError:
    return InputError(
        f"Row {example.row} is raw text: it has no prompt and no answer.",
        hint="Eval items need a prompt and the answer that was wanted.",
    )


class _Rows:
    """Growing columns of :class:`TokenizedRows`; a row leaves arrays behind, no objects."""

    def __init__(self, max_seq_length: int) -> None:
        self.problems: dict[int, str] = {}
        self._limit = max_seq_length
        self._ids: list[str] = []
        self._columns = array("q")
        self._pending: list[Tokens] = []
        self._chunks: list[tuple[NDArray[np.int32], NDArray[np.bool_]]] = []
        self._first: dict[str, int] = {}
        self._seen: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, example: Example, how: Supervision, tokens: Tokens, notice: str | None) -> None:
        if tokens.problem is not None:
            self.problems[len(self._ids)] = tokens.problem
        for sentence in (tokens.problem, notice):
            if sentence is not None:
                self._seen[sentence] += 1
                self._first.setdefault(sentence, example.row)
        self._ids.append(example.id)
        full = len(tokens.ids)
        kept = min(full, self._limit)
        targets = int(np.count_nonzero(tokens.supervised))
        self._columns.extend((example.row, kept, full, targets, int(how)))
        self._pending.append(tokens)
        if len(self._pending) == BATCH_ROWS:
            self._flush()

    def notes(self) -> Iterator[str]:
        ranked = self._seen.most_common()
        for sentence, count in ranked[:_REASONS_SHOWN]:
            first = self._first[sentence]
            yield f"{count} of {len(self)} rows (first: row {first}): {sentence}."
        if len(ranked) > _REASONS_SHOWN:
            others = sum(count for _, count in ranked[_REASONS_SHOWN:])
            yield f"{others} more rows with {len(ranked) - _REASONS_SHOWN} other reasons."

    def tokenized(self) -> TokenizedRows:
        self._flush()
        columns = np.array(self._columns, np.int64).reshape(-1, 5)
        ids = [chunk[0] for chunk in self._chunks]
        masks = [chunk[1] for chunk in self._chunks]
        return TokenizedRows(
            ids=tuple(self._ids),
            rows=columns[:, 0].copy(),
            input_ids=np.concatenate(ids) if ids else np.zeros(0, np.int32),
            supervised=np.concatenate(masks) if masks else np.zeros(0, np.bool_),
            offsets=np.concatenate(([0], np.cumsum(columns[:, 1]))).astype(np.int64),
            full_lengths=columns[:, 2].astype(np.int32),
            full_supervised=columns[:, 3].astype(np.int32),
            supervision=columns[:, 4].astype(np.uint8),
        )

    def _flush(self) -> None:
        if self._pending:
            ids = np.concatenate([row.ids[: self._limit] for row in self._pending])
            masks = np.concatenate([row.supervised[: self._limit] for row in self._pending])
            self._chunks.append((ids, masks))
            self._pending.clear()
