"""Rendered rows to token ids and target masks: one tokenizer call for many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradian_core.data.supervision import Rendered

__all__ = ["RowTokenizer", "Tokens"]

UNSTABLE = "the tokenizer gives no character offsets, and the tokens of the prompt change with it"


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """One row.

    Parameters
    ----------
    ids
        ``(t,)`` int32.
    supervised
        ``(t,)`` bool: targets. Never the first token.
    problem
        Why targets are missing, None where none is.
    """

    ids: NDArray[np.int32]
    supervised: NDArray[np.bool_]
    problem: str | None


class RowTokenizer:
    """A tokenizer with what has to be known about the tokens that it adds.

    Parameters
    ----------
    tokenizer
        A transformers tokenizer, fast or not.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.eos: int | None = tokenizer.eos_token_id

    @cached_property
    def leading_text(self) -> str:
        """Text of the begin-of-sequence token if the tokenizer adds it; else empty."""
        bos = self._tokenizer.bos_token_id
        adds = bos is not None and self._call(["a"], plain=True)["input_ids"][0][:1] == [bos]
        return str(self._tokenizer.bos_token) if adds else ""

    def begins(self, text: str) -> bool:
        """Whether a text writes the begin-of-sequence token that the tokenizer adds as well."""
        return bool(self.leading_text) and text.startswith(self.leading_text)

    def ids(self, text: str, *, plain: bool) -> list[int]:
        """Return the ids of a text that other text may follow (no end of sequence)."""
        ids: list[int] = list(self._call([self._bare(text, plain)], plain=plain)["input_ids"][0])
        # Some tokenizers close every text; an end that the text itself has stays.
        if plain and ids and ids[-1] == self.eos and not text.endswith(self._tokenizer.eos_token):
            ids.pop()
        return ids

    def rows(self, rendered: Sequence[Rendered]) -> list[Tokens]:
        """Tokenise rows; a fast tokenizer sees each row once, all of one kind in one call."""
        result: list[Tokens | None] = [None] * len(rendered)
        for plain in (False, True):
            places = [i for i, row in enumerate(rendered) if row.plain is plain]
            if not places:
                continue
            rows = [rendered[i] for i in places]
            for place, tokens in zip(places, self._rows(rows, plain=plain), strict=True):
                result[place] = tokens
        return [tokens for tokens in result if tokens is not None]

    def _rows(self, rows: Sequence[Rendered], *, plain: bool) -> list[Tokens]:
        texts = [self._bare(row.text, plain) for row in rows]
        fast = bool(self._tokenizer.is_fast)
        batch = self._call(texts, plain=plain, offsets=fast)
        result = []
        for index, row in enumerate(rows):
            ids = np.array(batch["input_ids"][index], np.int32)
            problem = row.problem
            shift = len(texts[index]) - len(row.text)
            spans = [(a + shift, b + shift) for a, b in row.spans or ()]
            if row.spans is None:
                mask = np.ones(len(ids), np.bool_)
            elif fast:
                mask = self._mask(ids, batch["offset_mapping"][index], spans)
            else:
                mask = np.zeros(len(ids), np.bool_)
                for start, end in spans:
                    first = self._prefix_size(ids, texts[index][:start], plain)
                    last = self._prefix_size(ids, texts[index][:end], plain)
                    if first is None or last is None:
                        problem = UNSTABLE
                    else:
                        mask[first:last] = True
            if row.ends and self.eos is not None:
                if not len(ids) or ids[-1] != self.eos:
                    ids = np.append(ids, np.int32(self.eos))
                    mask = np.append(mask, np.bool_(True))
                mask[-1] = True
            mask[:1] = False
            result.append(Tokens(ids, mask, problem))
        return result

    def _mask(
        self,
        ids: NDArray[np.int32],
        offsets: Sequence[tuple[int, int]],
        spans: Sequence[tuple[int, int]],
    ) -> NDArray[np.bool_]:
        edges = np.array(offsets, np.int64).reshape(-1, 2)
        starts, ends = edges[:, 0], edges[:, 1]
        mask = np.zeros(len(ids), np.bool_)
        for start, end in spans:
            inside = (ends > start) & (starts < end)
            # A token that prompt and answer share is a target, since it holds a part of the
            # answer; but an added token that swallows white space after it belongs to the prompt.
            shared = inside & (starts < start)
            if shared.any():
                inside[shared] = ~np.isin(ids[shared], self._added_ids)
            mask |= inside
        return mask

    def _prefix_size(self, ids: NDArray[np.int32], text: str, plain: bool) -> int | None:
        prefix = self.ids(text, plain=plain)
        same = len(prefix) <= len(ids) and bool(np.array_equal(ids[: len(prefix)], prefix))
        return len(prefix) if same else None

    def _bare(self, text: str, plain: bool) -> str:
        return text.removeprefix(self.leading_text) if plain else text

    @cached_property
    def _added_ids(self) -> NDArray[np.int64]:
        return np.array(sorted(self._tokenizer.added_tokens_decoder), np.int64)

    def _call(self, texts: list[str], *, plain: bool, offsets: bool = False) -> Any:
        return self._tokenizer(
            texts,
            add_special_tokens=plain,
            padding=False,
            truncation=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            return_offsets_mapping=offsets,
            verbose=False,
        )
