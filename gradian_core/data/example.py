"""One training or eval row, in one form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Example", "Turn", "example_id"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation.

    Parameters
    ----------
    role
        ``system``, ``user``, ``assistant`` or ``tool``.
    content
        Its text.
    extra
        Further keys that a chat template may read, such as ``tool_calls`` or ``name``.
    """

    role: str
    content: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    def as_message(self) -> dict[str, Any]:
        """Return the dict that chat templates expect."""
        return {"role": self.role, "content": self.content, **self.extra}


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One row.

    Exactly one of ``turns`` and ``text`` is set. A row in a prompt/answer shape becomes two
    turns; ``prompt`` and ``answer`` give them back for tokenizers without a chat template.

    Parameters
    ----------
    id
        12 hex digits of the content hash, ``-``, row number (see :func:`example_id`).
    row
        Row number in the file, from 0.
    turns
        The conversation; empty for raw text.
    text
        Raw text, or None.
    tools
        Tool schemas for the chat template, if the row has any.
    cluster
        The row's own ``cluster`` / ``cluster_id``, as text.
    """

    id: str
    row: int
    turns: tuple[Turn, ...] = ()
    text: str | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    cluster: str | None = None

    @property
    def prompt(self) -> tuple[Turn, ...]:
        """Everything before the last assistant turn."""
        last = self._last_assistant
        return self.turns if last is None else self.turns[:last]

    @property
    def answer(self) -> str | None:
        """Text of the last assistant turn, None where there is none."""
        last = self._last_assistant
        return None if last is None else self.turns[last].content

    @property
    def full_text(self) -> str:
        """All of its text, for clustering and excerpts."""
        if self.text is not None:
            return self.text
        return "\n".join(turn.content for turn in self.turns)

    def as_row(self) -> dict[str, Any]:
        """Return it in the shape of a file's row; reading that gives the same example."""
        row: dict[str, Any] = (
            {"messages": [turn.as_message() for turn in self.turns]}
            if self.text is None
            else {"text": self.text}
        )
        if self.tools:
            row["tools"] = [dict(tool) for tool in self.tools]
        if self.cluster is not None:
            row["cluster"] = self.cluster
        return row

    @property
    def _last_assistant(self) -> int | None:
        for index in range(len(self.turns) - 1, -1, -1):
            if self.turns[index].role == "assistant":
                return index
        return None


_CANONICAL = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def example_id(
    row: int,
    *,
    turns: tuple[Turn, ...] = (),
    text: str | None = None,
    tools: tuple[Mapping[str, Any], ...] = (),
) -> str:
    """Return ``<12 hex digits of the SHA-256 of the content>-<row>``.

    Equal content gives equal digits, so duplicates are visible in the id; the declared cluster
    is not content.
    """
    content = {
        "turns": [turn.as_message() for turn in turns],
        "text": text,
        "tools": [dict(tool) for tool in tools],
    }
    canonical = _CANONICAL.encode(content)
    return f"{hashlib.sha256(canonical.encode()).hexdigest()[:12]}-{row}"
